#include "actors/watchdog.hpp"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "layout/text.hpp"
#include "trace/clock.hpp"

namespace troupe {

Vitals VitalsOf(const ActivityTable& actors, const GroupWaits* waits) {
  Vitals vitals;
  std::size_t busy = 0;
  bool moving = false;
  for (const auto& entry : actors.List()) {
    vitals.actions += entry.activity->handled.load(std::memory_order_relaxed);
    busy += entry.activity->busy() ? 1 : 0;
    moving = moving || entry.activity->moving();
  }
  // A device that waits in a collective is in a handler, but does nothing.
  vitals.busy = moving || busy > (waits == nullptr ? 0 : waits->List().size());
  return vitals;
}

struct Watchdog::State {
  WatchdogConfig config;
  std::mutex mutex;
  std::condition_variable wake;
  bool stop = false;
  std::uint64_t last_actions = 0;
  std::int64_t quiet_since_ns = 0;
  bool stall_reported = false;
  /// Of an actor with its own thread: when it began to leave messages unread, after `handled` ones;
  /// 0: it does not.
  struct Unread {
    std::uint64_t handled = 0;
    std::int64_t since_ns = 0;
  };
  std::map<const Activity*, Unread> unread;
  std::thread thread;

  /// The actor's wait in a collective; null: it is not in one.
  static const Wait* WaitOf(const std::string& name, const std::vector<ActorWaits>& all) {
    for (const ActorWaits& waiting : all) {
      if (waiting.who == name && !waiting.waits.empty()) return &waiting.waits.front();
    }
    return nullptr;
  }

  /// Finds a device whose queue is stuck; its own thread goes on handling messages.
  void LookForStuckQueue(const ActivityTable::Entry& entry, std::int64_t now) {
    const std::int64_t since = entry.activity->queue_since_ns.load(std::memory_order_relaxed);
    if (since == 0 || now - since < config.pass_timeout.count()) return;
    config.abort->Raise({entry.name + " on " + config.process +
                             " is stuck: the command at the head of its queue has run for " +
                             InTenths(std::chrono::nanoseconds(now - since)),
                         FailureKind::kStall,
                         {entry.name}});
  }

  /// Finds a device whose state a thread copies or writes, and does not come to an end.
  void LookForStuckMove(const ActivityTable::Entry& entry, std::int64_t now) {
    const Activity& activity = *entry.activity;
    const std::int64_t since = activity.moved_ns.load(std::memory_order_relaxed);
    if (!activity.moving() || now - since < config.pass_timeout.count()) return;
    config.abort->Raise({entry.name + " on " + config.process +
                             " is stuck: a copy of its state, or the writing of one, has run for " +
                             InTenths(std::chrono::nanoseconds(now - since)),
                         FailureKind::kStall,
                         {entry.name}});
  }

  /// Finds an actor that does not read its mailbox. One whose own thread is alive begins a message
  /// within moments; those without one wait for a free thread, which may take long.
  void LookForUnread(const ActivityTable::Entry& entry, std::int64_t now) {
    const Activity& activity = *entry.activity;
    const std::uint64_t handled = activity.handled.load(std::memory_order_relaxed);
    const std::uint64_t messages = entry.long_runs && !activity.busy() ? activity.unread() : 0;
    Unread& seen = unread[entry.activity.get()];
    if (messages == 0 || seen.since_ns == 0 || seen.handled != handled) {
      seen = {handled, messages == 0 ? 0 : now};
    } else if (now - seen.since_ns >= config.stuck_after.count()) {
      config.abort->Raise(
          {entry.name + " on " + config.process + " does not read its mailbox: " +
               std::to_string(messages) + (messages == 1 ? " message has" : " messages have") +
               " waited there for " + InTenths(std::chrono::nanoseconds(now - seen.since_ns)),
           FailureKind::kStall,
           {entry.name}});
    }
  }

  void LookForStuck(std::int64_t now) {
    const auto waiting = config.waits ? config.waits->List() : std::vector<ActorWaits>();
    for (const auto& entry : config.actors->List()) {
      LookForStuckQueue(entry, now);
      LookForStuckMove(entry, now);
      LookForUnread(entry, now);
      const std::int64_t since = entry.activity->busy_since_ns.load(std::memory_order_relaxed);
      const auto limit = entry.long_runs ? config.pass_timeout : config.stuck_after;
      if (since == 0 || now - since < limit.count()) continue;
      const Wait* const wait = WaitOf(entry.name, waiting);
      // Its peer is probably the stuck one and will be reported there; otherwise report this actor.
      if (wait != nullptr && now - since < 2 * limit.count()) continue;
      const auto* const message = entry.activity->message.load(std::memory_order_relaxed);
      const std::string what =
          message == nullptr ? "making its programs" : "its handler of " + MessageName(message);
      std::string cause = entry.name + " on " + config.process + " is stuck: " + what +
                          " has run for " + InTenths(std::chrono::nanoseconds(now - since));
      std::vector<std::string> actors = {entry.name};
      if (wait != nullptr) {
        cause += " (it waits for " + ToString(*wait) + ")";
        actors.insert(actors.begin(), wait->whom);
      }
      config.abort->Raise({cause, FailureKind::kStall, actors});
    }
  }

  void LookForStall(std::int64_t now) {
    if (!config.stalled) return;
    Vitals all = VitalsOf(*config.actors, config.waits.get());
    if (config.others) {
      const Vitals others = config.others();
      all.actions += others.actions;
      all.busy = all.busy || others.busy;
    }
    const bool moved = all.busy || all.actions != last_actions;
    if (moved) stall_reported = false;  // not after a pause, in which nothing has moved
    if (moved || quiet_since_ns == 0) {
      last_actions = all.actions;
      quiet_since_ns = now;
    } else if (now - quiet_since_ns > config.stall_after.count() &&
               !std::exchange(stall_reported, true)) {
      config.stalled(std::chrono::nanoseconds(now - quiet_since_ns));
    }
  }

  void Loop() {
    std::unique_lock lock(mutex);
    std::int64_t before = NowNs();
    while (!wake.wait_for(lock, config.interval, [this] { return stop; })) {
      lock.unlock();
      const std::int64_t now = NowNs();
      if (config.looking) config.looking();
      // This process was stopped for a while: that time counts against no actor.
      const bool slept = now - before > 4 * std::chrono::nanoseconds(config.interval).count();
      before = now;
      if (slept) {
        quiet_since_ns = 0;
        unread.clear();
      } else if (!config.abort->raised()) {
        LookForStuck(now);
        LookForStall(now);
      }
      lock.lock();
    }
  }
};

Watchdog::Watchdog(WatchdogConfig config) : state_(std::make_unique<State>()) {
  state_->config = std::move(config);
  state_->thread = std::thread([state = state_.get()] { state->Loop(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  state_->thread.join();
}

}  // namespace troupe
