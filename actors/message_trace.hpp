// Notes every message of a process: where it is sent, where its handler begins, where that ends.
// Called by the base of all actors (actor_base.hpp), so that no handler has to.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <typeinfo>
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

/// What the calling thread is handling.
struct Handling {
  std::uint64_t message = 0;  ///< id in the trace; 0: none that is traced
  ActorNumber actor = 0;      ///< who handles it
  const Activity* activity = nullptr;
};
Handling& CurrentHandling();

/// For what runs later on behalf of the message that is handled now, on another thread.
template <class Function>
auto OnBehalf(Function function) {
  Handling handling = CurrentHandling();
  handling.activity = nullptr;  // the actor may be gone by then
  return [function = std::move(function), handling](auto&&... args) mutable {
    const Handling before = std::exchange(CurrentHandling(), handling);
    function(std::forward<decltype(args)>(args)...);
    CurrentHandling() = before;
  };
}

enum class TraceDetail { kWork, kMessages };  ///< work only, or messages, too

/// One per process. Thread-safe.
class MessageTrace {
 public:
  /// Nothing is noted before Open.
  explicit MessageTrace(int process, TraceDetail detail = TraceDetail::kMessages)
      : process_(process), detail_(detail) {}

  /// Throws what Recorder throws. Once.
  void Open(RecorderOptions options);
  /// Null before Open.
  Recorder* recorder() const { return open_.load(std::memory_order_acquire); }

  /// Actors of this process one by one, those of others by where they live.
  void NameActor(caf::actor_id actor, const ActorId& id);
  void KnowProcess(const caf::node_id& node, int process);

  ActorNumber NumberOf(caf::actor_id actor) const { return Number(process_, actor); }

  /// A message comes into the mailbox of `receiver`, in which `waiting` others are. Returns its
  /// number in the trace; 0: it is not traced.
  std::uint64_t Sent(const caf::mailbox_element& element, caf::actor_id receiver,
                     std::size_t waiting);
  /// The handling of a request is answered, to somebody of another process.
  void Answered(const caf::strong_actor_ptr& asker, caf::message_id request);
  /// Work of a device, which belongs to the message that is handled.
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
  mutable std::mutex mutex_;
  std::deque<std::pair<const caf::mailbox_element*, std::uint64_t>> waiting_;
};

}  // namespace troupe
