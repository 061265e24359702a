// Records every message of a process: when it is sent, when its handler begins and ends. Called by
// the base of all actors (actor_base.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <caf/actor_control_block.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/message_id.hpp>
#include <caf/node_id.hpp>

#include "trace/recorder.hpp"

namespace troupe {

struct Activity;

/// The message that the calling thread is handling.
struct Handling {
  std::uint64_t message = 0;  ///< id in the trace; 0: it is not traced
  ActorNumber actor = 0;      ///< the actor that handles it
  const Activity* activity = nullptr;
};
Handling& CurrentHandling();

/// `function` for later, as part of `handling`.
template <class Function>
auto InHandling(const Handling& handling, Function function) {
  return [function = std::move(function), handling](auto&&... args) mutable {
    const Handling before = std::exchange(CurrentHandling(), handling);
    function(std::forward<decltype(args)>(args)...);
    CurrentHandling() = before;
  };
}
/// `function` for another thread, later, on behalf of the message that is handled now.
template <class Function>
auto OnBehalf(Function function) {
  Handling handling = CurrentHandling();
  handling.activity = nullptr;  // the actor may have ended by then
  return InHandling(handling, std::move(function));
}

enum class TraceDetail { kWork, kMessages };  ///< work only, or messages, too

/// One per process. Thread-safe.
class MessageTrace {
 public:
  /// Records nothing before Open.
  explicit MessageTrace(int process, TraceDetail detail = TraceDetail::kMessages)
      : process_(process), detail_(detail) {}

  /// Called once. Throws the same as Recorder.
  void Open(RecorderOptions options);
  /// Null before Open.
  Recorder* recorder() const { return open_.load(std::memory_order_acquire); }

  /// Names an actor of this process. Actors of others are known by their process.
  void NameActor(caf::actor_id actor, const ActorId& id);
  void KnowProcess(const caf::node_id& node, int process);

  ActorNumber NumberOf(caf::actor_id actor) const { return Number(process_, actor); }

  /// Called when a message enters the mailbox of `receiver`, which holds `waiting` others. Returns
  /// its number in the trace; 0: it is not traced.
  std::uint64_t Sent(const caf::mailbox_element& element, caf::actor_id receiver,
                     std::size_t waiting);
  /// Called when this handling answers a request; records it if the sender is in another process.
  void Answered(const caf::strong_actor_ptr& sender, caf::message_id request);
  /// Records work of a device, as part of the message that is handled.
  void Worked(TraceRecord record);

 private:
  static ActorNumber Number(int process, caf::actor_id actor) {
    return static_cast<ActorNumber>(process) << kActorBits |
           static_cast<ActorNumber>(actor & ((1U << kActorBits) - 1));
  }
  ActorNumber NumberOf(const caf::strong_actor_ptr& actor) const;

  const int process_;
  const TraceDetail detail_;
  std::atomic<Recorder*> open_ = nullptr;
  std::unique_ptr<Recorder> recorder_;
  mutable std::mutex mutex_;
  std::vector<std::pair<ActorNumber, ActorId>> early_names_;
  std::unordered_map<caf::node_id, int> processes_;
};

/// The messages in one actor's mailbox that are traced.
class TracedMailbox {
 public:
  std::size_t size() const;
  void Put(const caf::mailbox_element* element, std::uint64_t number);
  /// 0: it is not traced.
  std::uint64_t Take(const caf::mailbox_element* element);

 private:
  using Entry = std::pair<const caf::mailbox_element*, std::uint64_t>;
  mutable std::mutex mutex_;
  std::deque<Entry> waiting_;
};

}  // namespace troupe
