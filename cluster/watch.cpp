#include "cluster/watch.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <poll.h>
#include <stdexcept>
#include <thread>
#include <utility>

#include "cluster/own_connections.hpp"
#include "cluster/poll_set.hpp"
#include "cluster/pulse.hpp"
#include "cluster/signals_blocked.hpp"
#include "cluster/silence.hpp"

namespace troupe {
namespace {

using std::chrono::steady_clock;

// Time for goodbyes that the peers' buffers do not take at once.
constexpr std::chrono::milliseconds kGoodbyeTime{200};

void Check(const WatchOptions& options) {
  if (options.interval.count() < 1 || options.suspect_after <= options.interval ||
      options.dead_after <= options.suspect_after || options.dead_after <= 2 * options.interval) {
    throw std::invalid_argument(
        "watch: expected interval < suspect_after < dead_after and 2 x interval < dead_after, "
        "got " +
        std::to_string(options.interval.count()) + ", " +
        std::to_string(options.suspect_after.count()) + " and " +
        std::to_string(options.dead_after.count()) + " ms");
  }
}

}  // namespace

struct Watch::State {
  using Time = Pulse::Time;

  State(std::vector<WatchedPeer> peers, const WatchOptions& options_in,
        std::function<Vitals()> vitals_in, WatchEvents events_in)
      : options(options_in), vitals(std::move(vitals_in)), events(std::move(events_in)) {
    const Time now = steady_clock::now();
    for (WatchedPeer& peer : peers) pulses.emplace_back(std::move(peer), now);
    Publish();
  }

  void Run();
  Time Wait(Time until);
  void SendAll(Time now);
  void SendGoodbyes();
  void Look(Pulse& pulse, Time now);
  void LookAtPaths(Time now);
  void Lose(Pulse& pulse, Loss loss, const std::string& line);
  void Publish();
  std::string LineOfVanished(const Pulse& vanished, Time now) const;

  const WatchOptions options;
  const std::function<Vitals()> vitals;
  const WatchEvents events;

  // Used by the thread only.
  std::vector<Pulse> pulses;
  PollSet polls;
  PathProgress paths;
  Time next_look{};
  bool sent_goodbyes = false;

  WakeUp wake_up;
  std::atomic<bool> leaving{false};
  std::atomic<bool> abandoned{false};
  std::atomic<bool> stopping{false};

  struct Copy {
    ProcessId process;
    Time last_heartbeat;
    Vitals vitals;
    std::int64_t clock_offset_ns;
  };
  mutable std::mutex mutex;
  std::vector<Copy> seen;  ///< guarded by mutex

  std::thread thread;  ///< last: it uses all of the above
};

void Watch::State::Run() {
  Time last_round = steady_clock::now();
  Time next_beat = last_round;
  while (!stopping) {
    const Time now = Wait(next_beat);
    // Reads everything waiting in the sockets before judging any silence.
    for (Pulse& pulse : pulses) pulse.Read(now);
    if (Overslept(now - last_round, options))
      for (Pulse& pulse : pulses) pulse.Forgive(now);
    last_round = now;
    if (leaving && !abandoned && !sent_goodbyes) SendGoodbyes();
    if (now >= next_beat && !sent_goodbyes) SendAll(now);
    if (now >= next_beat) next_beat = now + options.interval;
    for (Pulse& pulse : pulses) Look(pulse, now);
    if (now >= next_look) LookAtPaths(now);
    Publish();
  }
  if (!abandoned && !sent_goodbyes) SendGoodbyes();
  for (Pulse& pulse : pulses) pulse.Close(/*drain=*/true);
}

Watch::State::Time Watch::State::Wait(Time until) {
  polls.Clear();
  polls.Add(wake_up.fd(), POLLIN);
  for (const Pulse& pulse : pulses)
    if (pulse.open()) polls.Add(pulse.fd(), POLLIN);
  polls.Wait(until);
  if (polls.Ready(wake_up.fd()) != 0) wake_up.Clear();
  return steady_clock::now();
}

void Watch::State::SendAll(Time now) {
  const Vitals own = vitals ? vitals() : Vitals();
  for (Pulse& pulse : pulses) pulse.Send(Heartbeat::Kind::kBeat, own, now);
}

void Watch::State::SendGoodbyes() {
  sent_goodbyes = true;
  const Time deadline = steady_clock::now() + kGoodbyeTime;
  for (Pulse& pulse : pulses) {
    // A goodbye waits for an unfinished heartbeat, but not for a peer that takes no bytes.
    while (pulse.open() && !pulse.flushed() && steady_clock::now() < deadline) {
      polls.Clear();
      polls.Add(pulse.fd(), POLLOUT);
      polls.Wait(deadline);
      pulse.Flush();
    }
    pulse.Send(Heartbeat::Kind::kGoodbye, {}, steady_clock::now());
  }
}

void Watch::State::Look(Pulse& pulse, Time now) {
  if (pulse.presence == Presence::kLost || pulse.presence == Presence::kLeft) return;
  if (pulse.goodbye()) {
    pulse.presence = Presence::kLeft;
    return pulse.Close(/*drain=*/false);
  }
  if (pulse.end()) return Lose(pulse, pulse.end()->loss, pulse.end()->line);
  const Silence silence = pulse.Measure(now);
  switch (Judge(pulse.presence, silence, options)) {
    case Judgement::kNothing:
      return;
    case Judgement::kSuspect:
      pulse.presence = Presence::kSuspected;
      if (!leaving && events.suspected)
        events.suspected(pulse.process(), SuspectedLine(pulse.name(), silence.host, options));
      return;
    case Judgement::kBack:
      pulse.presence = Presence::kPresent;
      if (!leaving && events.recovered)
        events.recovered(pulse.process(), BackLine(pulse.name(), pulse.last_silence()));
      return;
    case Judgement::kStopped:
      return Lose(pulse, Loss::kStopped, StoppedLine(pulse.name(), options));
    case Judgement::kUnreachable:
      return Lose(pulse, Loss::kUnreachable, UnreachableLine(pulse.name(), options));
    case Judgement::kVanished:
      return Lose(pulse, Loss::kVanished, LineOfVanished(pulse, now));
  }
}

/// Checks this process's connections to the peers' hosts, including those of its libraries.
void Watch::State::LookAtPaths(Time now) {
  next_look = now + 2 * options.interval;
  for (const PathProgress::Stuck& stuck : paths.Look(OwnConnections(), now, options.dead_after)) {
    for (Pulse& pulse : pulses) {
      if (pulse.presence != Presence::kPresent || pulse.host() != stuck.peer.host) continue;
      // If heartbeats are stuck as well, packet size is not the cause.
      if (pulse.Measure(now).stuck >= options.suspect_after) continue;
      Lose(pulse, Loss::kLargePackets,
           LargePacketsLine(pulse.name(), stuck.local, stuck.peer, stuck.segment_bytes, options));
    }
  }
}

void Watch::State::Lose(Pulse& pulse, Loss loss, const std::string& line) {
  pulse.presence = Presence::kLost;
  // A peer that was only stopped learns on resuming why it is alone.
  pulse.Send(loss == Loss::kLargePackets ? Heartbeat::Kind::kGaveUpPath : Heartbeat::Kind::kGaveUp,
             {}, steady_clock::now());
  pulse.Close(/*drain=*/false);
  if (!leaving && events.lost) events.lost(pulse.process(), loss, line);
}

std::string Watch::State::LineOfVanished(const Pulse& vanished, Time now) const {
  std::vector<Silence> others;
  std::vector<std::string> names;
  for (const Pulse& pulse : pulses) {
    if (pulse.presence == Presence::kLost || pulse.presence == Presence::kLeft) continue;
    names.push_back(pulse.name());
    if (&pulse != &vanished) others.push_back(pulse.Measure(now));
  }
  return CutOff(others, options) ? CutOffLine(names) : VanishedLine(vanished.name(), options);
}

void Watch::State::Publish() {
  const std::lock_guard lock(mutex);
  seen.clear();
  for (const Pulse& pulse : pulses) {
    seen.push_back(
        {pulse.process(), pulse.last_heartbeat(), pulse.vitals(), pulse.clock_offset_ns()});
  }
}

Watch::Watch(std::vector<WatchedPeer> peers, WatchOptions options, std::function<Vitals()> vitals,
             WatchEvents events) {
  Check(options);
  state_ = std::make_unique<State>(std::move(peers), options, std::move(vitals), std::move(events));
  const SignalsBlocked blocked;
  state_->thread = std::thread([state = state_.get()] { state->Run(); });
}

Watch::~Watch() {
  Leave();
  state_->stopping = true;
  state_->wake_up.Signal();
  state_->thread.join();
}

void Watch::Abandon() {
  state_->abandoned = true;
  Leave();
}

void Watch::Leave() {
  state_->leaving = true;
  state_->wake_up.Signal();
}

Watch::Seen Watch::Last(ProcessId peer) const {
  const std::lock_guard lock(state_->mutex);
  for (const State::Copy& copy : state_->seen) {
    if (copy.process == peer)
      return {copy.vitals, steady_clock::now() - copy.last_heartbeat, copy.clock_offset_ns};
  }
  throw std::invalid_argument("watch: process " + std::to_string(peer) + " is not watched");
}

}  // namespace troupe
