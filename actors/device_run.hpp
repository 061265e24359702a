// How a device carries a command out: now, or on its queue. See device_actor.hpp.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <caf/actor_clock.hpp>
#include <caf/send.hpp>

#include "actors/device_actor.hpp"
#include "actors/device_work.hpp"
#include "actors/promise.hpp"
#include "trace/clock.hpp"

namespace troupe {

/// What the exception in flight says, in a line. Programs are not ours: they may throw anything.
std::string TextOfThrown();

/// Of the exception in flight: ends the job and says who failed and why, unless it is only the echo
/// of another failure.
caf::error Failed(DevicePointer self, const DeviceWork& work);

/// The lane on which a command's work goes.
constexpr Lane LaneOf(WorkKind kind) {
  return kind == WorkKind::kReduce ? Lane::kCollectives : Lane::kCompute;
}

/// The first command of a lane is another from now on. Tells the watchdog since when the device has
/// run what it runs: of two lanes the one that has run longer.
void NoteHead(DevicePointer self, Lane lane);

/// A piece has run on `lane`: for how long the device was busy with it and with nothing that has
/// counted already.
std::int64_t BusyFor(DeviceState& s, Lane lane, const WorkTimes& times);

/// Starts what waits, as far as there is room. The only place that queues work.
void Pump(DevicePointer self);

/// In virtual time: the device is busy from when it is free for as long as the work takes, and the
/// answer is delivered then. Nobody sleeps: the clock stands still until all have been heard.
template <class Answer>
caf::result<Answer> AnswerLater(DevicePointer self, const DeviceWork& work, Answer answer) {
  DeviceState& s = self->state;
  using Clock = caf::actor_clock;
  const std::int64_t now_ns = self->clock().now().time_since_epoch() / Clock::duration_type(1);
  const std::int64_t begin_ns = std::max(now_ns, s.free_at_ns);
  const std::int64_t takes_ns =
      work.aside ? 0 : s.config.takes_ns(work.kind, work.stage, work.unit);
  s.free_at_ns = begin_ns + takes_ns;
  if constexpr (requires { answer.busy_ns; }) answer.busy_ns = takes_ns;
  Record(s.config, work, {begin_ns, s.free_at_ns, {}});
  const caf::mailbox_element& question = *self->current_mailbox_element();
  self->clock().schedule_message(
      Clock::time_point(Clock::duration_type(s.free_at_ns)), question.sender,
      caf::make_mailbox_element(caf::strong_actor_ptr(self->ctrl()), question.mid.response_id(), {},
                                std::move(answer)));
  return caf::delegated<Answer>();
}

/// Calls `body`, which returns the answer when the work is done, and accounts for it.
template <class Answer, class Body, class Then>
caf::result<Answer> RunNow(DevicePointer self, const DeviceWork& work, Body body, Then then) {
  DeviceState& s = self->state;
  WorkTimes times{.begin_ns = NowNs(), .end_ns = 0, .error = {}};
  const CoreTime before = s.cores.Read();
  try {
    s.config.abort->ThrowIfRaised();
    Answer answer = body();
    then(answer);
    if (s.config.takes_ns) return AnswerLater(self, work, std::move(answer));
    const CoreTime cores = s.cores.Since(before);
    times.end_ns = NowNs();
    if constexpr (requires { answer.busy_ns; }) answer.busy_ns = times.end_ns - times.begin_ns;
    Record(s.config, work, times, cores);
    return answer;
  } catch (...) {
    return Failed(self, work);
  }
}

/// All that was queued for a command has run: the rest of it, and its answer.
template <class Answer, class Then>
void Complete(DevicePointer self, const DeviceWork& work, const std::string& error, Answer& answer,
              Promise<Answer>& asker, Then then) {
  DeviceState& s = self->state;
  try {
    const WorkTimes times = s.queue->TakeTimes(LaneOf(work.kind));
    [[maybe_unused]] const std::int64_t busy_ns = BusyFor(s, LaneOf(work.kind), times);
    s.config.abort->ThrowIfRaised();
    if (!error.empty()) throw std::runtime_error(error);
    then(answer);
    if constexpr (requires { answer.busy_ns; }) answer.busy_ns = busy_ns;
    Record(s.config, work, times);
    asker.deliver(std::move(answer));
  } catch (...) {
    asker.deliver(Failed(self, work));
  }
}

/// The same on a queue: `body` queues the work, and `then` and the answer come when it has run.
template <class Answer, class Body, class Then>
caf::result<Answer> RunQueued(DevicePointer self, const DeviceWork& work, Body body, Then then) {
  DeviceState& s = self->state;
  Promise<Answer> asker = self->template make_response_promise<Answer>();
  const auto start = [self, &s, work, asker, body, then, handling = CurrentHandling()]() mutable {
    const Handling around = std::exchange(CurrentHandling(), handling);
    try {
      s.config.abort->ThrowIfRaised();
      const Lane lane = LaneOf(work.kind);
      auto& queued = s.on(lane).queued;
      s.queue->Begin(RangeName(s.config, work), lane);
      auto answer = std::make_shared<Answer>();
      try {
        *answer = body();
      } catch (...) {
        s.queue->End({});
        throw;
      }
      queued.push_back([=](const std::string& error) mutable {
        const Handling before = std::exchange(CurrentHandling(), handling);
        Complete(self, work, error, *answer, asker, then);
        CurrentHandling() = before;
      });
      // Before it can be done: whoever looks must not find an idle device with work.
      if (queued.size() == 1) NoteHead(self, lane);
      try {
        s.queue->End([lane, me = caf::actor_cast<Device>(self)](const std::string& error) {
          caf::anon_send(me, WorkEnded{lane, error});
        });
      } catch (...) {  // a device that has failed: nobody will say that it is done
        queued.pop_back();
        if (queued.empty()) NoteHead(self, lane);
        throw;
      }
    } catch (...) {
      asker.deliver(Failed(self, work));
    }
    CurrentHandling() = around;
  };
  s.waiting.push_back({LaneOf(work.kind), start});
  Pump(self);
  return asker;
}

inline constexpr auto kNothingMore = [](auto&) {};

/// A command of a round. `body` does its work, or queues it, and returns the answer; `then` is for
/// what the answer can say only when the work has run.
template <class Answer, class Body, class Then = decltype(kNothingMore)>
caf::result<Answer> Execute(DevicePointer self, const DeviceWork& work, Body body,
                            Then then = kNothingMore) {
  return self->state.queue ? RunQueued<Answer>(self, work, body, then)
                           : RunNow<Answer>(self, work, body, then);
}

/// What the host does itself with the shard's memory: nothing else is under way meanwhile. Noted
/// like all work, unless it is done aside.
template <class Answer, class Body>
caf::result<Answer> ExecuteAlone(DevicePointer self, const DeviceWork& work, Body body) {
  DeviceState& s = self->state;
  if (!s.queue) return RunNow<Answer>(self, work, body, kNothingMore);
  Promise<Answer> asker = self->template make_response_promise<Answer>();
  const auto start = [self, &s, work, asker, body, handling = CurrentHandling()]() mutable {
    const Handling around = std::exchange(CurrentHandling(), handling);
    try {
      s.config.abort->ThrowIfRaised();
      s.queue->Synchronize();
      WorkTimes times{.begin_ns = NowNs(), .end_ns = 0, .error = {}};
      Answer answer = body();
      times.end_ns = NowNs();
      Record(s.config, work, times);
      asker.deliver(std::move(answer));
    } catch (...) {
      asker.deliver(Failed(self, work));
    }
    CurrentHandling() = around;
  };
  s.waiting.push_back({std::nullopt, start});
  Pump(self);
  return asker;
}

}  // namespace troupe
