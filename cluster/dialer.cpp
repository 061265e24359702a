#include "cluster/dialer.hpp"

#include <cerrno>
#include <poll.h>
#include <utility>

#include "cluster/text.hpp"

namespace troupe {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRetryAfter{100};
// Time for the other side to read our Opening: it may have thousands of connections to serve.
constexpr milliseconds kFirstByteTime{10'000};
constexpr int kMostTlsLost = 3;

}  // namespace

Dialer::Dialer(const RunKey& join_key, DialOptions options)
    : join_key_(join_key), options_(std::move(options)), next_(options_.not_before) {}

void Dialer::AddTo(PollSet& polls) const {
  if (securing_) polls.Add(securing_->fd(), securing_->events());
  if (status_ != Status::kTrying || !socket_) return;
  const bool writes = !handshake_ || !handshake_->flushed();
  polls.Add(socket_.fd(), static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN));
}

Deadline Dialer::NextDeadline() const { return next_; }

Dialer::Status Dialer::Serve(const PollSet& polls, Deadline now) {
  if (status_ != Status::kTrying) return status_;
  if (securing_) {
    if (polls.Ready(securing_->fd()) != 0 || now >= next_) Secure(now);
    return status_;
  }
  if (!socket_) {
    if (now >= next_) Begin(now);
    return status_;
  }
  const bool ready = polls.Ready(socket_.fd()) != 0;
  if (ready && !handshake_) {
    const int error = socket_.ConnectResult();
    if (error != 0) {
      Retry(SystemWords(error), now);
      refused_ = error == ECONNREFUSED;
      return status_;
    }
    Opening opening{.purpose = options_.purpose,
                    .from = options_.self,
                    .to = options_.other,
                    .run = options_.run,
                    .tls = options_.tls.context != nullptr};
    FillRandom(opening.nonce);
    handshake_ = Handshake::Initiate(join_key_, opening);
    connected_at_ = now;
    next_ = now + kHandshakeTime;
  }
  if (ready) Exchange(now);
  if (status_ == Status::kTrying && socket_ && !securing_ && now >= next_) TimeOut(now);
  return status_;
}

void Dialer::TimeOut(Deadline now) {
  static const std::string kSilent = "it accepts connections, but does not answer";
  if (!handshake_) return Retry("connection timed out", now);
  const Deadline patience = connected_at_ + kFirstByteTime;
  if (handshake_->started() || now >= patience) return Retry(kSilent, now);
  error_ = kSilent;
  refused_ = false;
  next_ = patience;
}

void Dialer::Begin(Deadline now) {
  try {
    // Resolved again in every round: the name may move to another machine meanwhile.
    if (addresses_.empty()) addresses_ = Resolve(options_.address);
    const ResolvedAddress address = addresses_.front();
    addresses_.erase(addresses_.begin());
    socket_ = Socket::StartConnect(address);
    next_ = now + kConnectTime;
  } catch (const SocketError& error) {
    Retry(error.what(), now);
    refused_ = error.code == ECONNREFUSED;
  } catch (const std::runtime_error& error) {
    Retry(error.what(), now);
  }
}

void Dialer::Retry(const std::string& error, Deadline now) {
  error_ = error;
  refused_ = false;
  socket_ = Socket();
  handshake_.reset();
  securing_.reset();
  next_ = addresses_.empty() ? now + kRetryAfter : now;
}

void Dialer::Fail(const std::string& error, JoinFault fault) {
  status_ = Status::kFailed;
  error_ = error;
  fault_ = fault;
  socket_ = Socket();
  securing_.reset();
}

void Dialer::Exchange(Deadline now) {
  const bool started = handshake_->started();
  try {
    const bool open = handshake_->Exchange(socket_);
    if (!started && handshake_->started()) next_ = now + kHandshakeTime;
    if (!open) return Retry("it closed the connection before it had proven the run key", now);
  } catch (const std::exception& error) {
    return Retry(error.what(), now);
  }
  Conclude(now);
}

void Dialer::Conclude(Deadline now) {
  switch (handshake_->status()) {
    case Handshake::Status::kProven:
      return Proven(now);
    case Handshake::Status::kStranger:
      if (!handshake_->opened()) return Fail(ToString(options_.address) + " is not a Troupe job");
      return Fail(ToString(options_.address) + " does not have this run key", JoinFault::kRunKey);
    case Handshake::Status::kVersion:
      return Fail(handshake_->problem());
    case Handshake::Status::kTlsDiffers: {
      const std::string own = options_.tls.NameOf(options_.self);
      const std::string other = options_.tls.NameOf(options_.other);
      return Fail(handshake_->other().tls ? TlsDifference(other, own) : TlsDifference(own, other));
    }
    case Handshake::Status::kDisagrees:
      if (options_.purpose != Purpose::kJoin) return Retry(handshake_->problem(), now);
      return Fail(ToString(options_.address) + ": " + handshake_->problem());
    case Handshake::Status::kRunning:
      return;
  }
}

void Dialer::Proven(Deadline now) {
  if (options_.tls.context == nullptr) {
    status_ = Status::kConnected;
    error_.clear();
    return;
  }
  try {
    securing_.emplace(*options_.tls.context,
                      ProvenSocket{std::move(socket_), handshake_->session()}, Side::kInitiator,
                      options_.tls.NameOf(options_.other));
  } catch (const std::runtime_error& error) {
    return Retry(error.what(), now);
  }
  next_ = securing_->until();
  Secure(now);
}

void Dialer::Secure(Deadline now) {
  switch (securing_->Advance(now)) {
    case TlsHandshake::Status::kRunning:
      return;
    case TlsHandshake::Status::kFailed: {
      const std::string problem = securing_->problem();
      if (securing_->lost() && ++num_tls_lost_ < kMostTlsLost) return Retry(problem, now);
      return Fail(problem);
    }
    case TlsHandshake::Status::kDone:
      break;
  }
  try {
    ProvenSocket secured = securing_->Take();
    socket_ = std::move(secured.socket);
    wire_ = std::move(secured.wire);
  } catch (const SocketError& error) {
    return Retry(error.what(), now);
  }
  securing_.reset();
  status_ = Status::kConnected;
  error_.clear();
}

}  // namespace troupe
