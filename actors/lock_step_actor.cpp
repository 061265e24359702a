#include "actors/lock_step_actor.hpp"

#include <memory>
#include <utility>

#include "actors/names.hpp"
#include "actors/promise.hpp"

namespace troupe {
namespace {

using Self = ActorPointer<LockStep, LockStepState>;

// What commands are called where somebody waits for them.
using OpenSet = LockStepState::OpenSet;
OpenSet Described(const RunForward& x) {
  return {asked::kForward, "microbatch", x.pass.unit, {}, {}};
}
OpenSet Described(const RunBackward& x) {
  return {asked::kBackward, "microbatch", x.pass.unit, {}, {}};
}
OpenSet Described(const ReduceGradients& x) {
  return {asked::kReduction, "round", x.round, {}, {}};
}
OpenSet Described(const UpdateParameters& x) { return {asked::kUpdate, "round", x.round, {}, {}}; }
OpenSet Described(const RunExchange& x) { return {asked::kExchange, "window", x.unit, {}, {}}; }
OpenSet Described(const Inspect&) { return {asked::kInspecting, "", 0, {}, {}}; }
OpenSet Described(const SaveShard&) { return {asked::kSaving, "", 0, {}, {}}; }
OpenSet Described(const LoadShard&) { return {asked::kLoading, "", 0, {}, {}}; }

/// The handler for one kind of command.
template <class Command, class Answer>
auto Handler(Self self) {
  struct Gather {
    Promise<FromSet<Answer>> promise;
    FromSet<Answer> answers;
    std::size_t missing = 0;
    bool failed = false;
  };
  return [self](const ToSet<Command>& set) -> caf::result<FromSet<Answer>> {
    LockStepState& s = self->state;
    auto gather = std::make_shared<Gather>();
    gather->promise = self->make_response_promise<FromSet<Answer>>();
    gather->missing = set.parts.size();
    gather->answers.parts.resize(set.parts.size());
    if (set.parts.empty()) return FromSet<Answer>{};
    const std::int64_t number = s.next_set++;
    OpenSet& open = s.open.emplace(number, Described(set.parts.front().second)).first->second;
    open.answered.resize(set.parts.size());
    for (std::size_t i = 0; i < set.parts.size(); ++i) {
      const auto& [rank, command] = set.parts[i];
      open.ranks.push_back(rank);
      self->request(s.config.devices.at(rank), caf::infinite, command)
          .then(
              [&s, gather, i, number](const Answer& answer) {
                gather->answers.parts[i] = answer;
                s.open.at(number).answered[i] = true;
                if (--gather->missing > 0) return;
                s.open.erase(number);
                if (!gather->failed) gather->promise.deliver(std::move(gather->answers));
              },
              [gather](const caf::error& reason) {
                --gather->missing;
                if (!std::exchange(gather->failed, true)) gather->promise.deliver(reason);
              });
    }
    return gather->promise;
  };
}

Waits WaitsOf(const LockStepState& s) {
  ActorWaits mine;
  mine.who = s.config.name;
  for (const auto& [number, set] : s.open) {
    mine.owes.push_back({OnRanks(set.what, set.ranks), set.number, ""});
    for (std::size_t i = 0; i < set.ranks.size(); ++i) {
      if (set.answered[i]) continue;
      mine.waits.push_back({set.what, set.unit, set.number, DeviceName(set.ranks[i]), true});
    }
  }
  return {{mine}};
}

}  // namespace

LockStep::behavior_type RunLockStep(Self self, LockStepConfig config) {
  LockStepState& s = self->state;
  s.config = std::move(config);
  return {Handler<RunForward, ForwardDone>(self),
          Handler<RunBackward, BackwardDone>(self),
          Handler<ReduceGradients, GradientsReduced>(self),
          Handler<UpdateParameters, ParametersUpdated>(self),
          Handler<RunExchange, ExchangeDone>(self),
          Handler<Inspect, Inspected>(self),
          Handler<SaveShard, ShardStored>(self),
          Handler<LoadShard, ShardStored>(self),
          [&s](const ReportWaits&) { return WaitsOf(s); }};
}

}  // namespace troupe
