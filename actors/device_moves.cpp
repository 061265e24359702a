#include "actors/device_moves.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include <caf/actor_clock.hpp>
#include <caf/send.hpp>

#include "actors/device_work.hpp"
#include "actors/promise.hpp"

namespace troupe {
namespace {

/// In virtual time: answered when the copies before it and its own are over.
template <class Answer>
caf::result<Answer> AnswerLater(DevicePointer self, const DeviceWork& move) {
  DeviceState& s = self->state;
  using Clock = caf::actor_clock;
  const std::int64_t now_ns = self->clock().now().time_since_epoch() / Clock::duration_type(1);
  const std::int64_t begin_ns = std::max(now_ns, s.copies_free_at_ns);
  s.copies_free_at_ns = begin_ns + s.config.takes_ns(move.kind, move.stage, move.unit);
  Record(s.config, move, {begin_ns, s.copies_free_at_ns, {}});
  const caf::mailbox_element& question = *self->current_mailbox_element();
  self->clock().schedule_message(
      Clock::time_point(Clock::duration_type(s.copies_free_at_ns)), question.sender,
      caf::make_mailbox_element(caf::strong_actor_ptr(self->ctrl()), question.mid.response_id(), {},
                                Answer{}));
  return caf::delegated<Answer>();
}

/// The job's first failure is raised here, with its cause.
caf::error Failed(const DeviceState& s, const DeviceWork& move, const std::string& cause) {
  // One line of it; libraries like to append backtraces.
  const std::string text = Describe(s.config, move) + ": " + cause.substr(0, cause.find('\n'));
  s.config.abort->Raise(text);
  return MakeFailure(text);
}

/// Begins the copies by `begin(done)`. Failures are answered like everything else: a promise that
/// has been made is the only way to answer.
template <class Answer, class Begin>
caf::result<Answer> BeginMove(DevicePointer self, const DeviceWork& move, Begin begin) {
  DeviceState& s = self->state;
  if (s.config.takes_ns) {
    try {
      begin([](const WorkTimes&) {});
      return AnswerLater<Answer>(self, move);
    } catch (const std::exception& e) {
      return Failed(s, move, e.what());
    }
  }
  const std::int64_t number = s.next_move++;
  Promise<Answer> promise = self->template make_response_promise<Answer>();
  // Whoever looks for what a backward waited for finds the copy in the handling of its command.
  auto record = OnBehalf([&s, move](const WorkTimes& times) { Record(s.config, move, times); });
  s.moves[number] = [&s, move, promise, record](const StateMoved& moved) mutable {
    if (!moved.times.error.empty()) return promise.deliver(Failed(s, move, moved.times.error));
    record(moved.times);
    promise.deliver(Answer{});
  };
  // The device may be gone by then: it must not live on for this.
  auto moved = OnBehalf([weak = self->address(), number](const WorkTimes& times) {
    const auto device = caf::actor_cast<caf::strong_actor_ptr>(weak);
    if (device) caf::anon_send(caf::actor_cast<DeviceWithMoves>(device), StateMoved{number, times});
  });
  try {
    s.config.abort->ThrowIfRaised();
    begin(std::move(moved));
  } catch (const Aborted& aborted) {
    s.moves.erase(number);
    promise.deliver(MakeFailure(aborted.what()));
  } catch (const std::exception& e) {
    s.moves.erase(number);
    promise.deliver(Failed(s, move, e.what()));
  } catch (...) {  // programs are not ours
    s.moves.erase(number);
    promise.deliver(Failed(s, move, "something was thrown that is no exception"));
  }
  return promise;
}

}  // namespace

caf::result<StateOffloaded> BeginOffload(DevicePointer self, const OffloadState& offload) {
  StageProgram& program = *self->state.programs.at(offload.stage);
  return BeginMove<StateOffloaded>(
      self, {WorkKind::kOffload, offload.stage, offload.round, offload.unit},
      [&](StateMovedCallback done) { program.Offload(std::move(done)); });
}

caf::result<StateRestored> BeginRestore(DevicePointer self, const RestoreState& restore) {
  StageProgram& program = *self->state.programs.at(restore.stage);
  return BeginMove<StateRestored>(
      self, {WorkKind::kRestore, restore.stage, restore.round, restore.unit},
      [&](StateMovedCallback done) { program.Restore(restore.moments, std::move(done)); });
}

void EndMove(DeviceState& state, const StateMoved& moved) {
  const auto node = state.moves.extract(moved.number);
  if (!node.empty()) node.mapped()(moved);
}

}  // namespace troupe
