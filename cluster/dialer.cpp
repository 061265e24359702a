#include "cluster/dialer.hpp"

#include <array>
#include <cerrno>
#include <poll.h>
#include <utility>

#include "cluster/acceptor.hpp"
#include "cluster/text.hpp"

namespace troupe {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRetryAfter{100};
// For a host that does not answer at all; the kernel alone would try for two minutes.
constexpr milliseconds kConnectTime{5000};
// Time for the other side to read our Opening: it may have thousands of connections to serve.
constexpr milliseconds kFirstByteTime{10'000};
constexpr int kMostTlsLost = 3;

}  // namespace

Dialer::Dialer(const RunKey& join_key, DialOptions options)
    : join_key_(join_key), options_(std::move(options)), next_(options_.not_before) {}

void Dialer::AddTo(PollSet& polls) const {
  if (securing_) polls.Add(securing_->fd(), securing_->events());
  if (status_ != Status::kTrying || !socket_) return;
  const bool writes = !handshake_ || !output_.empty();
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
    Opening opening;
    opening.purpose = options_.purpose;
    opening.from = options_.self;
    opening.to = options_.other;
    opening.run = options_.run;
    opening.tls = options_.tls.context != nullptr;
    FillRandom(opening.nonce);
    handshake_ = Handshake::Initiate(join_key_, opening);
    output_ = handshake_->TakeOutput();
    connected_at_ = now;
    received_ = false;
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
  if (received_ || now >= patience) return Retry(kSilent, now);
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
  output_.clear();
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
  std::array<std::byte, Opening::kBytes> bytes;
  std::string over;
  try {
    socket_.TryDrain(output_);
    while (handshake_->wanted() > 0) {
      const auto n = socket_.TryRead(std::span(bytes).first(handshake_->wanted()));
      if (!n) return;
      if (*n == 0) {
        over = "it closed the connection before it had proven the run key";
        break;
      }
      if (!std::exchange(received_, true)) next_ = now + kHandshakeTime;
      handshake_->Receive(std::span(bytes).first(*n));
      const auto output = handshake_->TakeOutput();
      output_.insert(output_.end(), output.begin(), output.end());
      socket_.TryDrain(output_);
    }
  } catch (const std::exception& error) {
    over = error.what();
  }
  if (over.empty()) {
    Conclude(now);
  } else {
    Retry(over, now);
  }
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
  next_ = now + kHandshakeTime;
  try {
    securing_.emplace(*options_.tls.context, std::move(socket_), Side::kInitiator,
                      options_.tls.NameOf(options_.other), &handshake_->session());
  } catch (const std::runtime_error& error) {
    return Retry(error.what(), now);
  }
  Secure(now);
}

void Dialer::Secure(Deadline now) {
  switch (securing_->Advance()) {
    case TlsHandshake::Status::kRunning:
      if (now < next_) return;
      securing_->GiveUp(kHandshakeTime);
      return TlsFailed(now);
    case TlsHandshake::Status::kFailed:
      return TlsFailed(now);
    case TlsHandshake::Status::kDone:
      break;
  }
  try {
    SecuredSocket secured = securing_->Take();
    socket_ = std::move(secured.socket);
    wire_ = std::move(secured.wire);
  } catch (const SocketError& error) {
    return Retry(error.what(), now);
  }
  securing_.reset();
  status_ = Status::kConnected;
  error_.clear();
}

void Dialer::TlsFailed(Deadline now) {
  const std::string problem = securing_->problem();
  if (securing_->lost() && ++num_tls_lost_ < kMostTlsLost) {
    Retry(problem, now);
  } else {
    Fail(problem);
  }
}

}  // namespace troupe
