// The current activity of every actor of a process, readable without a message: an actor that is
// stuck does not answer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <typeinfo>
#include <vector>

#include "messages/facts.hpp"
#include "trace/clock.hpp"

namespace troupe {

class MessageTrace;

/// The activity of one actor; written by the thread that runs it, unless stated otherwise.
struct Activity {
  std::atomic<std::int64_t> busy_since_ns = 0;           ///< steady clock; 0: no handler runs
  std::atomic<const std::type_info*> message = nullptr;  ///< in that handler
  std::atomic<std::uint64_t> received = 0;               ///< messages put into its mailbox
  std::atomic<std::uint64_t> handled = 0;                ///< of those received
  std::atomic<bool> ended = false;                       ///< it reads its mailbox no more
  /// Start of the current command of a device with a queue; 0: none is queued.
  std::atomic<std::int64_t> queue_since_ns = 0;
  /// Copies of state and writes of a device that run on other threads, and when one of them last
  /// began or ended.
  std::atomic<int> moves = 0;
  std::atomic<std::int64_t> moved_ns = 0;
  /// Set by a leader that keeps the credits of its edge; -1 for all other actors.
  std::atomic<int> credits_left = -1;
  /// Records its messages; set once, before the actor gets its first message. May be null.
  std::shared_ptr<MessageTrace> trace;

  /// Messages that it has not begun to handle.
  std::uint64_t unread() const {
    // In this order: a message that arrives in between is not counted.
    const std::uint64_t all = received.load(std::memory_order_relaxed);
    const std::uint64_t begun = handled.load(std::memory_order_relaxed) +
                                (busy_since_ns.load(std::memory_order_relaxed) != 0 ? 1 : 0);
    return ended.load(std::memory_order_relaxed) || all < begun ? 0 : all - begun;
  }

  /// Busy, on its own thread or on its queue.
  bool busy() const {
    return busy_since_ns.load(std::memory_order_relaxed) != 0 ||
           queue_since_ns.load(std::memory_order_relaxed) != 0;
  }
  /// On any thread.
  void MoveBegins() { NoteMove(1); }
  void MoveEnds() { NoteMove(-1); }
  bool moving() const { return moves.load(std::memory_order_relaxed) != 0; }

 private:
  void NoteMove(int change) {
    moved_ns.store(NowNs(), std::memory_order_relaxed);
    moves.fetch_add(change, std::memory_order_relaxed);
  }
};

/// A fault that a test plants: it strikes at the n-th message of a kind that an actor gets.
struct PlantedFault {
  enum class Kind { kSleep, kSlow, kLose, kThrow, kFreeze, kKill };
  Kind kind = Kind::kSleep;
  std::string actor;    ///< "stage language.s0 dp0"
  std::string message;  ///< "Activation"
  std::uint64_t count = 1;
  std::int64_t generation = 0;  ///< of the job, in which it strikes
  /// Reads "sleep@stage language.s0 dp0@Activation@5": sleep (for good), slow (for 400 ms), lose,
  /// throw, freeze (handle it, then read no more messages) or kill (the process). "@1" after it: in
  /// generation 1 of the job. Throws std::invalid_argument.
  static PlantedFault Parse(const std::string& text);
};

/// A base of every actor, so that its owner finds its Activity.
class Active {
 public:
  virtual ~Active() = default;
  const std::shared_ptr<Activity>& activity() const { return activity_; }
  /// Before the actor gets its first message, or from its own thread.
  void Plant(const PlantedFault& fault) { fault_ = fault; }

 protected:
  /// Returns the kind of the planted fault if it strikes at this message.
  std::optional<PlantedFault::Kind> FaultAt(const std::type_info* message);
  /// May sleep for good, or throw.
  void Strike(PlantedFault::Kind kind);
  /// Does not return once a fault has frozen the actor.
  void StayIfFrozen() const;

 private:
  std::shared_ptr<Activity> activity_ = std::make_shared<Activity>();
  std::optional<PlantedFault> fault_;
  bool frozen_ = false;
};

/// The actors of one process. Thread-safe.
class ActivityTable {
 public:
  struct Entry {
    std::string name;        ///< "stage vision.s0 dp1"
    bool long_runs = false;  ///< has its own thread: its handlers may take long
    std::shared_ptr<const Activity> activity;
  };

  void Add(Entry entry);
  /// Removes the first entry of that name that has ended.
  void Remove(const std::string& name);
  std::vector<Entry> List() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace troupe
