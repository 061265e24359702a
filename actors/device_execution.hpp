// How a device runs one command: shared by device_actor.cpp and device_state.cpp.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <caf/actor_clock.hpp>
#include <caf/send.hpp>

#include "actors/device_actor.hpp"
#include "trace/clock.hpp"
#include "transport/timed_wait.hpp"

namespace troupe {

// device_actor.cpp

/// Starts waiting commands while there is room. The only place that queues work.
void PumpDevice(DevicePointer self);
/// Called when the first command of a lane changes. The watchdog learns when the device began to
/// run its current command: of two lanes the earlier time.
void NoteHead(DevicePointer self, Lane lane);
/// Returns how long the device was busy with a piece that has run on `lane`, without time that has
/// already been counted.
std::int64_t BusyFor(DeviceState& s, Lane lane, const WorkTimes& times);
/// Records the collectives of the program of `work` that have ended.
void RecordConcurrent(DeviceState& s, const DeviceWork& work);

// device_state.cpp: the state of a shard on its way to host memory, back, and to files.

caf::result<StateOffloaded> OffloadShard(DevicePointer self, const OffloadState& command);
caf::result<StateRestored> RestoreShard(DevicePointer self, const RestoreState& command);
/// When it is on the device.
caf::result<StateCopied> CopyShard(DevicePointer self, const CopyState& command);
/// What was copied is stored by another thread.
caf::result<ShardStored> StoreShard(DevicePointer self, const SaveShard& save);

/// The lane of a command's work.
constexpr Lane LaneOf(WorkKind kind) {
  return kind == WorkKind::kReduce ? Lane::kCollectives : Lane::kCompute;
}

template <class Command>
DeviceWork WorkOf(WorkKind kind, const Command& x) {
  DeviceWork work{.kind = kind, .stage = x.stage, .round = x.round};
  if constexpr (requires { x.unit; }) work.unit = x.unit;
  if constexpr (requires { x.pass.unit; }) work.unit = x.pass.unit;
  if constexpr (requires { x.place; }) work.place = x.place;
  if constexpr (requires { x.samples; }) work.samples = x.samples;
  return work;
}

/// Virtual time: the work begins at `free_at_ns`, or now if that is past, and its answer is
/// delivered when it ends. The clock stands still until all messages of an instant are handled.
template <class Answer>
caf::result<Answer> AnswerLater(DevicePointer self, const DeviceWork& work, Answer answer,
                                std::int64_t& free_at_ns) {
  const DeviceConfig& config = self->state.config;
  using Clock = caf::actor_clock;
  const std::int64_t now_ns = self->clock().now().time_since_epoch() / Clock::duration_type(1);
  const std::int64_t begin_ns = std::max(now_ns, free_at_ns);
  const std::int64_t takes_ns =
      work.untraced ? 0 : config.takes_ns(work.kind, work.stage, work.unit);
  free_at_ns = begin_ns + takes_ns;
  if constexpr (requires { answer.busy_ns; }) answer.busy_ns = takes_ns;
  if constexpr (requires { answer.own_ns; }) answer.own_ns = takes_ns;
  Record(config, work, {begin_ns, free_at_ns, {}});
  const caf::mailbox_element& question = *self->current_mailbox_element();
  self->clock().schedule_message(
      Clock::time_point(Clock::duration_type(free_at_ns)), question.sender,
      caf::make_mailbox_element(caf::strong_actor_ptr(self->ctrl()), question.mid.response_id(), {},
                                std::move(answer)));
  return caf::delegated<Answer>();
}

/// Calls `body`, which does the work and returns the answer.
template <class Answer, class Body, class Then>
caf::result<Answer> RunNow(DevicePointer self, const DeviceWork& work, Body body, Then then) {
  DeviceState& s = self->state;
  WorkTimes times{.begin_ns = NowNs(), .end_ns = 0, .error = {}};
  const CoreTime before = s.cores.Read();
  const std::int64_t waited_before_ns = TimedWait::TotalNs();
  try {
    s.config.abort->ThrowIfRaised();
    Answer answer = body();
    then(answer);
    if (s.config.takes_ns) return AnswerLater(self, work, std::move(answer), s.free_at_ns);
    const CoreTime cores = s.cores.Since(before);
    times.end_ns = NowNs();
    if constexpr (requires { answer.busy_ns; }) answer.busy_ns = times.end_ns - times.begin_ns;
    if constexpr (requires { answer.own_ns; }) {
      answer.own_ns = answer.busy_ns - (TimedWait::TotalNs() - waited_before_ns);
    }
    Record(s.config, work, times, cores);
    RecordConcurrent(s, work);
    return answer;
  } catch (...) {
    return FailWork(s.config, work);
  }
}

/// Calls `start(promise)` when there is room on `lane`, or when all lanes are empty if there is
/// none. Answers for it if it throws.
template <class Answer, class Start>
caf::result<Answer> StartInTurn(DevicePointer self, const DeviceWork& work,
                                std::optional<Lane> lane, Start start) {
  DeviceState& s = self->state;
  Promise<Answer> promise = self->template make_response_promise<Answer>();
  s.waiting.push_back({lane, InHandling(CurrentHandling(), [&s, work, promise, start]() mutable {
                         try {
                           s.config.abort->ThrowIfRaised();
                           start(promise);
                         } catch (...) {
                           promise.deliver(FailWork(s.config, work));
                         }
                       })});
  PumpDevice(self);
  return promise;
}

/// All that `work` has queued has run, or failed with `error`: finishes the answer and sends it.
template <class Answer, class Then>
void EndQueued(DeviceState& s, const DeviceWork& work, const std::string& error, Answer& answer,
               Promise<Answer>& promise, Then then) {
  try {
    const WorkTimes times = s.queue->TakeTimes(LaneOf(work.kind));
    [[maybe_unused]] const std::int64_t busy_ns = BusyFor(s, LaneOf(work.kind), times);
    s.config.abort->ThrowIfRaised();
    if (!error.empty()) throw std::runtime_error(error);
    then(answer);
    if constexpr (requires { answer.busy_ns; }) answer.busy_ns = busy_ns;
    if constexpr (requires { answer.own_ns; }) answer.own_ns = busy_ns;
    Record(s.config, work, times);
    RecordConcurrent(s, work);
    promise.deliver(std::move(answer));
  } catch (...) {
    promise.deliver(FailWork(s.config, work));
  }
}

/// Calls `body`, which queues the work; `then` is called and the answer sent when it has run.
template <class Answer, class Body, class Then>
caf::result<Answer> RunQueued(DevicePointer self, const DeviceWork& work, Body body, Then then) {
  const Lane lane = LaneOf(work.kind);
  const auto start = [self, work, lane, body, then](Promise<Answer>& promise) {
    DeviceState& s = self->state;
    auto& queued = s.on(lane).queued;
    s.queue->Begin(RangeName(s.config, work), lane);
    auto answer = std::make_shared<Answer>();
    try {
      *answer = body();
    } catch (...) {
      s.queue->End({});
      throw;
    }
    queued.push_back(InHandling(
        CurrentHandling(), [&s, work, answer, promise, then](const std::string& error) mutable {
          EndQueued(s, work, error, *answer, promise, then);
        }));
    // Before it can be done: the watchdog must not find an idle device with work.
    if (queued.size() == 1) NoteHead(self, lane);
    try {
      s.queue->End([lane, me = caf::actor_cast<Device>(self)](const std::string& error) {
        caf::anon_send(me, WorkEnded{lane, error});
      });
    } catch (...) {  // the device has failed: no WorkEnded will come
      queued.pop_back();
      if (queued.empty()) NoteHead(self, lane);
      throw;
    }
  };
  return StartInTurn<Answer>(self, work, lane, start);
}

inline constexpr auto kNothingMore = [](auto&) {};

/// Runs a command of a round. `body` does its work, or queues it, and returns the answer; `then`
/// completes the answer when the work has run.
template <class Answer, class Body, class Then = decltype(kNothingMore)>
caf::result<Answer> Execute(DevicePointer self, const DeviceWork& work, Body body,
                            Then then = kNothingMore) {
  return self->state.queue ? RunQueued<Answer>(self, work, body, then)
                           : RunNow<Answer>(self, work, body, then);
}

/// Runs work that the host does with the shard's memory, while nothing else is under way.
template <class Answer, class Body>
caf::result<Answer> ExecuteAlone(DevicePointer self, const DeviceWork& work, Body body) {
  if (!self->state.queue) return RunNow<Answer>(self, work, body, kNothingMore);
  const auto start = [&s = self->state, work, body](Promise<Answer>& promise) {
    s.queue->Synchronize();
    WorkTimes times{.begin_ns = NowNs(), .end_ns = 0, .error = {}};
    Answer answer = body();
    times.end_ns = NowNs();
    Record(s.config, work, times);
    promise.deliver(std::move(answer));
  };
  return StartInTurn<Answer>(self, work, std::nullopt, start);
}

}  // namespace troupe
