#include "cluster/acceptor.hpp"

#include <algorithm>
#include <array>
#include <poll.h>
#include <utility>

namespace troupe {
namespace {

constexpr std::uint64_t kSaidOneByOne = 3;
constexpr std::chrono::seconds kCountEvery{5};
constexpr std::chrono::milliseconds kPause{100};

}  // namespace

std::optional<std::string> RefusalLog::Note(const std::string& address, Deadline now) {
  ++count_;
  if (count_ > kSaidOneByOne && now - last_said_ < kCountEvery) return std::nullopt;
  last_said_ = now;
  const std::uint64_t unsaid = count_ - std::exchange(num_said_, count_);
  if (unsaid == 1)
    return "refused a connection from " + address + ": it could not prove the run key";
  return "refused " + std::to_string(unsaid) + " more connections, the last from " + address +
         ": they could not prove the run key";
}

Acceptor::Acceptor(Socket listener, const RunKey& join_key, ProcessId self,
                   std::function<void(const std::string& line)> say, TlsUse tls)
    : listener_(std::move(listener)),
      join_key_(join_key),
      self_(self),
      say_(std::move(say)),
      tls_(std::move(tls)) {}

void Acceptor::AddTo(PollSet& polls, Deadline now) const {
  for (const Pending& pending : pending_)
    polls.Add(pending.socket.fd(),
              static_cast<short>(pending.output.empty() ? POLLIN : POLLIN | POLLOUT));
  for (const Securing& securing : securing_)
    polls.Add(securing.handshake.fd(), securing.handshake.events());
  if (has_room(now)) polls.Add(listener_.fd(), POLLIN);
}

Deadline Acceptor::NextDeadline(Deadline now) const {
  Deadline next = now + kHandshakeTime;
  if (!pending_.empty()) next = std::min(next, pending_.front().began + kHandshakeTime);
  if (!securing_.empty()) next = std::min(next, securing_.front().began + kHandshakeTime);
  if (now < pause_until_) return std::min(next, pause_until_);
  if (!has_room(now)) next = std::min(next, pending_.front().began + kGrace);
  return next;
}

std::vector<Arrival> Acceptor::Serve(const PollSet& polls, Deadline now) {
  std::vector<Arrival> arrivals;
  for (Pending& pending : pending_) {
    const bool ready = polls.Ready(pending.socket.fd()) != 0;
    if (ready || now >= pending.began + kHandshakeTime)
      pending.over = Advance(pending, now, arrivals);
  }
  std::erase_if(pending_, [](const Pending& pending) { return pending.over; });
  for (Securing& securing : securing_) {
    if (securing.over) continue;  // at its very beginning
    const bool ready = polls.Ready(securing.handshake.fd()) != 0;
    if (ready || now >= securing.began + kHandshakeTime)
      securing.over = Secure(securing, now, arrivals);
  }
  // A deque of what cannot be assigned loses elements at its ends only.
  std::deque<Securing> left;
  for (Securing& securing : securing_)
    if (!securing.over) left.push_back(std::move(securing));
  securing_.swap(left);
  if (has_room(now) && polls.Ready(listener_.fd()) != 0) Admit(now);
  return arrivals;
}

bool Acceptor::has_room(Deadline now) const {
  if (now < pause_until_) return false;
  return pending_.size() < kMostPending || now - pending_.front().began >= kGrace;
}

void Acceptor::Admit(Deadline now) {
  try {
    while (has_room(now)) {
      Socket socket = listener_.TryAccept();
      if (!socket) return;
      if (pending_.size() == kMostPending) {
        Refuse(pending_.front(), now);
        pending_.pop_front();
      }
      std::string from;
      try {
        from = socket.peer_address().host;
      } catch (const SocketError&) {
        continue;  // already gone
      }
      Opening self;
      self.from = self_;
      self.run = run_;
      self.tls = tls_.context != nullptr;
      FillRandom(self.nonce);
      pending_.push_back({std::move(socket), Handshake::Accept(join_key_, self), {}, from, now});
    }
  } catch (const SocketError& error) {
    // Most likely no descriptors are left: trying at once again would only burn time.
    pause_until_ = now + kPause;
    if (say_) say_(error.what());
  }
}

bool Acceptor::Advance(Pending& pending, Deadline now, std::vector<Arrival>& arrivals) {
  const bool alive = Exchange(pending);
  const Handshake& handshake = pending.handshake;
  switch (handshake.status()) {
    case Handshake::Status::kRunning:
      if (alive && now < pending.began + kHandshakeTime) return false;
      Refuse(pending, now);
      return true;
    case Handshake::Status::kStranger:
      Refuse(pending, now);
      return true;
    case Handshake::Status::kDisagrees:
      return true;
    case Handshake::Status::kVersion:
    case Handshake::Status::kTlsDiffers:
    case Handshake::Status::kProven:
      if (alive && pending.output.empty()) Proven(pending, now, arrivals);
      return !alive || pending.output.empty() || now >= pending.began + kHandshakeTime;
  }
  return true;
}

bool Acceptor::Exchange(Pending& pending) {
  std::array<std::byte, Opening::kBytes> bytes;
  try {
    for (;;) {
      while (!pending.output.empty()) {
        const std::size_t n = pending.socket.TryWrite(pending.output);
        if (n == 0) return true;
        pending.output.erase(pending.output.begin(),
                             pending.output.begin() + static_cast<std::ptrdiff_t>(n));
      }
      const std::size_t wanted = pending.handshake.wanted();
      if (wanted == 0) return true;
      const auto n = pending.socket.TryRead(std::span(bytes).first(wanted));
      if (!n) return true;
      if (*n == 0) return false;
      pending.handshake.Receive(std::span(bytes).first(*n));
      pending.output = pending.handshake.TakeOutput();
    }
  } catch (const std::exception&) {
    return false;
  }
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
  if (problem.empty() && tls_.context != nullptr) {
    try {
      securing_.push_back({TlsHandshake(*tls_.context, std::move(pending.socket), Side::kAcceptor,
                                        tls_.NameOf(other.from), &handshake.session()),
                           other, handshake.session(), now});
      securing_.back().over = Secure(securing_.back(), now, arrivals);
    } catch (const std::runtime_error& error) {
      if (say_) say_(error.what());
    }
    return;
  }
  arrivals.push_back(
      {std::move(pending.socket), other, handshake.session(), std::move(problem)});
}

bool Acceptor::Secure(Securing& securing, Deadline now, std::vector<Arrival>& arrivals) {
  TlsHandshake& handshake = securing.handshake;
  TlsHandshake::Status status = handshake.Advance();
  if (status == TlsHandshake::Status::kRunning) {
    if (now < securing.began + kHandshakeTime) return false;
    handshake.GiveUp(kHandshakeTime);
    status = TlsHandshake::Status::kFailed;
  }
  try {
    if (status == TlsHandshake::Status::kDone) {
      SecuredSocket secured = handshake.Take();
      arrivals.push_back({std::move(secured.socket), securing.other, securing.session, "",
                          std::move(secured.wire)});
      return true;
    }
  } catch (const SocketError& error) {
    if (say_) say_(error.what());
    return true;
  }
  if (say_) say_(handshake.problem());
  // What was only lost comes again.
  if (!handshake.lost())
    arrivals.push_back({Socket(), securing.other, securing.session, handshake.problem()});
  return true;
}

void Acceptor::Refuse(const Pending& pending, Deadline now) {
  const auto line = log_.Note(pending.from, now);
  if (line && say_) say_(*line);
}

}  // namespace troupe
