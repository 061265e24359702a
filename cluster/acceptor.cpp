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
                   std::function<void(const std::string& line)> say)
    : listener_(std::move(listener)), join_key_(join_key), self_(self), say_(std::move(say)) {}

void Acceptor::AddTo(PollSet& polls, Deadline now) const {
  for (const Pending& pending : pending_)
    polls.Add(pending.socket.fd(),
              static_cast<short>(pending.output.empty() ? POLLIN : POLLIN | POLLOUT));
  if (has_room(now)) polls.Add(listener_.fd(), POLLIN);
}

Deadline Acceptor::NextDeadline(Deadline now) const {
  Deadline next = now + kHandshakeTime;
  if (!pending_.empty()) next = std::min(next, pending_.front().began + kHandshakeTime);
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
    case Handshake::Status::kProven:
      if (alive && pending.output.empty())
        arrivals.push_back({std::move(pending.socket), handshake.other(), handshake.session(),
                            handshake.problem()});
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

void Acceptor::Refuse(const Pending& pending, Deadline now) {
  const auto line = log_.Note(pending.from, now);
  if (line && say_) say_(*line);
}

}  // namespace troupe
