#include "cluster/acceptor.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <poll.h>
#include <utility>

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kPause{100};
// Accepted per call: bounds the delay of connections that have proven the key.
constexpr int kBatch = 256;

}  // namespace

std::optional<std::string> RefusalLog::Note(const std::string& address) {
  last_ = address;
  if (++count_ > 1) return std::nullopt;
  return "refused a connection from " + address + ": it could not prove " + key_ +
         " (further ones are only counted)";
}

std::optional<std::string> RefusalLog::Total() {
  if (count_ <= num_reported_) return std::nullopt;
  num_reported_ = count_;
  return "refused " + std::to_string(count_) + " connections that could not prove " + key_ +
         ", the last from " + last_;
}

Acceptor::Acceptor(Socket listener, const RunKey& join_key, ProcessId self,
                   std::function<void(const std::string& line)> print, TlsUse tls,
                   PlaceLimits limits, const std::string& key_name)
    : listener_(std::move(listener)),
      join_key_(join_key),
      self_(self),
      print_(std::move(print)),
      tls_(std::move(tls)),
      limits_(limits),
      log_(key_name) {}

void Acceptor::AddTo(PollSet& polls, Deadline now) const {
  for (const Pending& pending : pending_) {
    polls.Add(pending.socket.fd(),
              static_cast<short>(pending.handshake.flushed() ? POLLIN : POLLIN | POLLOUT));
  }
  for (const Securing& securing : securing_)
    polls.Add(securing.handshake.fd(), securing.handshake.events());
  if (now >= pause_until_) polls.Add(listener_.fd(), POLLIN);
}

Deadline Acceptor::NextDeadline(Deadline now) const {
  Deadline next = now + kHandshakeTime;
  if (!pending_.empty()) next = std::min(next, pending_.front().began + kHandshakeTime);
  if (!securing_.empty()) next = std::min(next, securing_.front().handshake.until());
  return now < pause_until_ ? std::min(next, pause_until_) : next;
}

std::vector<Arrival> Acceptor::Serve(const PollSet& polls, Deadline now) {
  std::vector<Arrival> arrivals;
  for (Pending& pending : pending_) {
    const bool ready = polls.Ready(pending.socket.fd()) != 0;
    if (ready || now >= pending.began + kHandshakeTime)
      pending.over = Advance(pending, now, arrivals);
  }
  pending_.remove_if([](const Pending& pending) { return pending.over; });
  if (polls.Ready(listener_.fd()) != 0) Admit(now, arrivals);
  // Last, because Advance and Admit may add elements, some of which are already over.
  for (Securing& securing : securing_) {
    if (securing.over) continue;  // ended when it started
    const bool ready = polls.Ready(securing.handshake.fd()) != 0;
    if (ready || now >= securing.handshake.until()) securing.over = Secure(securing, now, arrivals);
  }
  securing_.remove_if([](const Securing& securing) { return securing.over; });
  return arrivals;
}

void Acceptor::Admit(Deadline now, std::vector<Arrival>& arrivals) {
  try {
    for (int i = 0; i < kBatch; ++i) {
      Socket socket = listener_.TryAccept();
      if (!socket) break;
      try {
        pending_.push_back(NewPending(std::move(socket), now));
      } catch (const SocketError&) {
        continue;  // already gone
      }
      // A member has usually sent its Opening by now.
      if (Advance(pending_.back(), now, arrivals)) pending_.pop_back();
    }
  } catch (const SocketError& error) {
    // Usually out of descriptors: an immediate retry would only burn CPU time.
    pause_until_ = now + kPause;
    if (!std::exchange(reported_full_, true)) print_(error.what());
  }
  Evict();
}

Acceptor::Pending Acceptor::NewPending(Socket socket, Deadline now) const {
  std::string from = socket.peer_address().host;
  Opening self{.from = self_, .run = run_, .tls = tls_.context != nullptr};
  FillRandom(self.nonce);
  return {std::move(socket), Handshake::Accept(join_key_, self), std::move(from), now};
}

void Acceptor::Evict() {
  if (pending_.size() <= limits_.per_source) return;
  std::map<std::string, std::size_t> sources;
  std::vector<Occupant> occupants;
  for (const Pending& pending : pending_) {
    const auto source = sources.emplace(pending.from, sources.size()).first;
    occupants.push_back({source->second, !pending.handshake.opened()});
  }
  std::size_t place = 0;
  auto pending = pending_.begin();
  for (const std::size_t evicted : ChooseEvicted(occupants, limits_)) {
    std::advance(pending, static_cast<std::ptrdiff_t>(evicted - place));
    Refuse(*pending);
    pending = pending_.erase(pending);
    place = evicted + 1;
  }
}

void Acceptor::ReportTotal() {
  if (const auto line = log_.Total()) print_(*line);
}

bool Acceptor::Advance(Pending& pending, Deadline now, std::vector<Arrival>& arrivals) {
  Handshake& handshake = pending.handshake;
  bool alive = false;
  try {
    alive = handshake.Exchange(pending.socket);
  } catch (const std::exception&) {
    // Broken.
  }
  switch (handshake.status()) {
    case Handshake::Status::kRunning:
      if (alive && now < pending.began + kHandshakeTime) return false;
      Refuse(pending);
      return true;
    case Handshake::Status::kStranger:
      Refuse(pending);
      return true;
    case Handshake::Status::kDisagrees:
      return true;
    case Handshake::Status::kVersion:
    case Handshake::Status::kTlsDiffers:
    case Handshake::Status::kProven:
      if (alive && handshake.flushed()) Proven(pending, now, arrivals);
      return !alive || handshake.flushed() || now >= pending.began + kHandshakeTime;
  }
  return true;
}

void Acceptor::Proven(Pending& pending, Deadline now, std::vector<Arrival>& arrivals) {
  const Handshake& handshake = pending.handshake;
  const Opening& other = handshake.other();
  std::string problem = handshake.problem();
  if (handshake.status() == Handshake::Status::kTlsDiffers) {
    const std::string name = tls_.NameOf(other.from);
    const std::string own = tls_.NameOf(self_);
    problem = other.tls ? TlsDifference(name, own) : TlsDifference(own, name);
  }
  if (!problem.empty()) return arrivals.push_back({other, std::nullopt, std::move(problem)});
  ProvenSocket proven{std::move(pending.socket), handshake.session()};
  if (tls_.context == nullptr) return arrivals.push_back({other, std::move(proven)});
  try {
    securing_.push_back(
        {TlsHandshake(*tls_.context, std::move(proven), Side::kAcceptor, tls_.NameOf(other.from)),
         other});
    securing_.back().over = Secure(securing_.back(), now, arrivals);
  } catch (const std::runtime_error& error) {
    print_(error.what());
  }
}

bool Acceptor::Secure(Securing& securing, Deadline now, std::vector<Arrival>& arrivals) const {
  TlsHandshake& handshake = securing.handshake;
  switch (handshake.Advance(now)) {
    case TlsHandshake::Status::kRunning:
      return false;
    case TlsHandshake::Status::kDone:
      try {
        arrivals.push_back({securing.other, handshake.Take()});
      } catch (const SocketError& error) {
        print_(error.what());
      }
      return true;
    case TlsHandshake::Status::kFailed:
      print_(handshake.problem());
      // After a lost connection the other side tries again.
      if (!handshake.lost())
        arrivals.push_back({securing.other, std::nullopt, handshake.problem()});
      return true;
  }
  return true;
}

void Acceptor::Refuse(const Pending& pending) {
  if (const auto line = log_.Note(pending.from)) print_(*line);
}

}  // namespace troupe
