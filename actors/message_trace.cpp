#include "actors/message_trace.hpp"

#include <algorithm>

#include <caf/actor_system.hpp>

#include "actors/activity.hpp"
#include "messages/facts.hpp"
#include "trace/clock.hpp"

namespace troupe {

Handling& CurrentHandling() {
  thread_local Handling handling;
  return handling;
}

void MessageTrace::Open(RecorderOptions options) {
  options.types = MessageTypeNames();
  options.process = process_;
  auto recorder = std::make_unique<Recorder>(options);
  const std::lock_guard lock(mutex_);
  recorder_ = std::move(recorder);
  for (const auto& [number, id] : early_names_) recorder_->NameActor(number, id);
  early_names_.clear();
  open_.store(recorder_.get(), std::memory_order_release);
}

void MessageTrace::NameActor(caf::actor_id actor, const ActorId& id) {
  const std::lock_guard lock(mutex_);
  if (recorder_) {
    recorder_->NameActor(NumberOf(actor), id);
  } else {
    early_names_.emplace_back(NumberOf(actor), id);
  }
}

void MessageTrace::KnowProcess(const caf::node_id& node, int process) {
  const std::lock_guard lock(mutex_);
  processes_[node] = process;
}

ActorNumber MessageTrace::NumberOf(const caf::strong_actor_ptr& actor) const {
  if (!actor) return 0;
  const std::lock_guard lock(mutex_);
  const auto found = processes_.find(actor->node());
  if (found != processes_.end()) return Number(found->second, actor->id());
  // An actor of an unknown process must not pass for one of this process.
  return actor->node() == actor->home_system->node() ? Number(process_, actor->id()) : 0;
}

std::uint64_t MessageTrace::Sent(const caf::mailbox_element& element, caf::actor_id receiver,
                                 std::size_t waiting) {
  Recorder* const open = recorder();
  const caf::type_erased_tuple& content = element.content();
  if (open == nullptr || content.empty() || detail_ == TraceDetail::kWork) return 0;
  const std::type_info* const type = content.type(0).second;
  const MessageType* const known = type == nullptr ? nullptr : FindMessageType(*type);
  if (known == nullptr) return 0;
  TraceRecord record;
  record.kind = RecordKind::kMessage;
  record.type = known->number;
  if (known->facts != nullptr) {
    const MessageFacts facts = known->facts(content);
    record.unit = facts.unit;
    record.round = static_cast<std::int32_t>(facts.round);
    record.bytes = facts.bytes;
    record.step = static_cast<std::int32_t>(facts.step);
    record.role = facts.role;
    record.stage = facts.source;
    record.asked = facts.asked ? 1 : 0;
  }
  const Handling& handling = CurrentHandling();
  record.cause = handling.message;
  // A message of another process comes from the network's thread, which handles nothing.
  record.sender = handling.actor != 0 ? handling.actor : NumberOf(element.sender);
  record.receiver = NumberOf(receiver);
  if (!element.mid.is_async()) {
    record.request = element.mid.request_id().integer_value();
    record.answer = element.mid.is_response() ? 1 : 0;
  }
  if (handling.activity != nullptr) {
    record.credits =
        static_cast<std::int16_t>(handling.activity->credits_left.load(std::memory_order_relaxed));
  }
  record.mailbox = static_cast<std::uint16_t>(std::min<std::size_t>(waiting, 0xFFFF));
  record.sent_ns = record.arrived_ns = NowNs();
  return open->Note(record);
}

void MessageTrace::Answered(const caf::strong_actor_ptr& sender, caf::message_id request) {
  Recorder* const open = recorder();
  const Handling& handling = CurrentHandling();
  if (open == nullptr || !sender || handling.actor == 0) return;
  const ActorNumber number = NumberOf(sender);
  if (number >> kActorBits == static_cast<ActorNumber>(process_)) return;
  TraceRecord record;
  record.kind = RecordKind::kAnswered;
  record.sender = handling.actor;
  record.receiver = number;
  record.cause = handling.message;
  record.request = request.request_id().integer_value();
  record.answer = 1;
  record.sent_ns = NowNs();
  open->Note(record);
}

void MessageTrace::Worked(TraceRecord record) {
  Recorder* const open = recorder();
  if (open == nullptr) return;
  record.kind = RecordKind::kWork;
  record.cause = CurrentHandling().message;
  record.receiver = CurrentHandling().actor;
  open->Note(record);
}

std::size_t TracedMailbox::size() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void TracedMailbox::Put(const caf::mailbox_element* element, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(waiting_, element, &Entry::first);
  if (known == waiting_.end()) {
    waiting_.emplace_back(element, number);
  } else {
    known->second = number;  // the address is used again: the message before it was never handled
  }
}

std::uint64_t TracedMailbox::Take(const caf::mailbox_element* element) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(waiting_, element, &Entry::first);
  if (known == waiting_.end()) return 0;
  const std::uint64_t number = known->second;
  waiting_.erase(known);
  return number;
}

}  // namespace troupe
