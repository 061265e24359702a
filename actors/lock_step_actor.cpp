#include "actors/lock_step_actor.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "actors/names.hpp"
#include "actors/promise.hpp"

namespace troupe {
namespace {

using LockStepPointer = ActorPointer<LockStep, LockStepState>;

// What commands are called where somebody waits for them.
using OpenSet = LockStepState::OpenSet;
OpenSet Opened(const char* what, const char* unit = "", std::int64_t number = 0) {
  OpenSet open;
  open.what = what;
  open.unit = unit;
  open.number = number;
  return open;
}
OpenSet Described(const RunForward& x) {
  return Opened(asked::kForward, "microbatch", x.pass.unit);
}
OpenSet Described(const RunBackward& x) {
  return Opened(asked::kBackward, "microbatch", x.pass.unit);
}
OpenSet Described(const RunBackwardWeights& x) {
  return Opened(asked::kWeights, "microbatch", x.unit);
}
OpenSet Described(const ReduceGradients& x) { return Opened(asked::kReduction, "round", x.round); }
OpenSet Described(const UpdateParameters& x) { return Opened(asked::kUpdate, "round", x.round); }
OpenSet Described(const RunExchange& x) { return Opened(asked::kExchange, "window", x.unit); }
OpenSet Described(const OffloadState& x) { return Opened(asked::kOffload, "window", x.unit); }
OpenSet Described(const RestoreState& x) { return Opened(asked::kRestore, "window", x.unit); }
OpenSet Described(const Inspect&) { return Opened(asked::kInspecting); }
OpenSet Described(const SaveShard&) { return Opened(asked::kSaving); }
OpenSet Described(const LoadShard&) { return Opened(asked::kLoading); }

/// The pass that a command is, if an order may hold it back.
std::optional<StagePass> OrderedPass(const RunForward& x) {
  if (!x.pass.train) return std::nullopt;  // no backward will come: nobody's order has it
  return StagePass{x.stage, {PassKind::kForward, x.pass.unit}};
}
std::optional<StagePass> OrderedPass(const RunBackward& x) {
  return StagePass{x.stage, {PassKind::kBackward, x.pass.unit}};
}
std::optional<StagePass> OrderedPass(const RunBackwardWeights& x) {
  return StagePass{x.stage, {PassKind::kWeight, x.unit}};
}
template <class Command>
std::optional<StagePass> OrderedPass(const Command&) {
  return std::nullopt;
}

/// Sends what may go now, in the order of `rank`.
void SendInOrder(LockStepState& s, int rank) {
  const DeviceOrder& order = s.config.orders.at(rank).order;
  auto& held = s.held[rank];
  std::size_t& turn = s.turns[rank];
  while (true) {
    const StagePass& next = order[turn];
    const auto found = std::find_if(held.begin(), held.end(), [&](const auto& waiting) {
      return waiting.pass.stage == next.stage && waiting.pass.pass.kind == next.pass.kind;
    });
    if (found == held.end()) return;
    const auto send = std::move(found->send);
    held.erase(found);
    turn = (turn + 1) % order.size();  // rounds repeat
    send();
  }
}

/// One set under way: gathers the answers.
template <class Answer>
struct Gather {
  Promise<FromSet<Answer>> promise;
  FromSet<Answer> answers;
  std::size_t missing = 0;
  bool failed = false;
};

template <class Answer, class Command>
void Send(LockStepPointer self, std::int64_t number, const ToSet<Command>& set,
          const std::shared_ptr<Gather<Answer>>& gather) {
  LockStepState& s = self->state;
  s.open.at(number).sent = true;
  for (std::size_t i = 0; i < set.parts.size(); ++i) {
    const auto& [rank, command] = set.parts[i];
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
}

/// The handler for one kind of command.
template <class Command, class Answer>
auto Handler(LockStepPointer self) {
  return [self](const ToSet<Command>& set) -> caf::result<FromSet<Answer>> {
    LockStepState& s = self->state;
    if (set.parts.empty()) return FromSet<Answer>{};
    auto gather = std::make_shared<Gather<Answer>>();
    gather->promise = self->make_response_promise<FromSet<Answer>>();
    gather->missing = set.parts.size();
    gather->answers.parts.resize(set.parts.size());
    const auto& [first_rank, command] = set.parts.front();
    const std::int64_t number = s.next_set++;
    OpenSet& open = s.open.emplace(number, Described(command)).first->second;
    open.answered.resize(set.parts.size());
    for (const auto& part : set.parts) open.ranks.push_back(part.first);
    const auto pass = OrderedPass(command);
    const auto order = s.config.orders.find(first_rank);
    // A colocated encoder shares the rank and has no part in its order.
    if (!pass || order == s.config.orders.end() || !order->second.names.contains(pass->stage)) {
      Send<Answer>(self, number, set, gather);
    } else {
      s.held[first_rank].push_back(
          {*pass, [self, number, set, gather] { Send<Answer>(self, number, set, gather); }});
      SendInOrder(s, first_rank);
    }
    return gather->promise;
  };
}

/// The pass that those held on `rank` wait for.
Wait WaitForTurn(const LockStepState& s, int rank) {
  const LockStepOrder& order = s.config.orders.at(rank);
  const auto turn = s.turns.find(rank);
  const StagePass& next = order.order[turn == s.turns.end() ? 0 : turn->second];
  const char* what = next.pass.kind == PassKind::kForward    ? asked::kForward
                     : next.pass.kind == PassKind::kBackward ? asked::kBackward
                                                             : asked::kWeights;
  return {std::string(what) + " that is first in the order of rank " + std::to_string(rank),
          "microbatch of the round", next.pass.unit, order.names.at(next.stage), false};
}

Waits WaitsOf(const LockStepState& s) {
  ActorWaits mine;
  mine.who = s.config.name;
  for (const auto& [number, set] : s.open) {
    mine.owes.push_back({OnRanks(set.what, set.ranks), set.number, ""});
    for (std::size_t i = 0; set.sent && i < set.ranks.size(); ++i) {
      if (set.answered[i]) continue;
      mine.waits.push_back({set.what, set.unit, set.number, DeviceName(set.ranks[i]), true});
    }
  }
  for (const auto& [rank, held] : s.held) {
    if (!held.empty()) mine.waits.push_back(WaitForTurn(s, rank));
  }
  return {{mine}};
}

}  // namespace

LockStep::behavior_type RunLockStep(LockStepPointer self, LockStepConfig config) {
  LockStepState& s = self->state;
  s.config = std::move(config);
  return {Handler<RunForward, ForwardDone>(self),
          Handler<RunBackward, BackwardDone>(self),
          Handler<RunBackwardWeights, BackwardWeightsDone>(self),
          Handler<ReduceGradients, GradientsReduced>(self),
          Handler<UpdateParameters, ParametersUpdated>(self),
          Handler<RunExchange, ExchangeDone>(self),
          Handler<OffloadState, StateOffloaded>(self),
          Handler<RestoreState, StateRestored>(self),
          Handler<Inspect, Inspected>(self),
          Handler<SaveShard, ShardStored>(self),
          Handler<LoadShard, ShardStored>(self),
          [&s](const ReportWaits&) { return WaitsOf(s); }};
}

}  // namespace troupe
