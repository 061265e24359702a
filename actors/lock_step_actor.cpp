#include "actors/lock_step_actor.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace troupe {
namespace {

using LockStepPointer = ActorPointer<LockStep, LockStepState>;

/// The pass that a command is.
template <class Command>
std::optional<StagePass> PassOf(const Command& x) {
  if constexpr (std::is_same_v<Command, RunForward>) {
    return StagePass{x.stage, {PassKind::kForward, x.pass.unit}};
  } else if constexpr (std::is_same_v<Command, RunBackward>) {
    return StagePass{x.stage, {PassKind::kBackward, x.pass.unit}};
  } else if constexpr (std::is_same_v<Command, RunBackwardWeights>) {
    return StagePass{x.stage, {PassKind::kWeight, x.unit}};
  }
  return std::nullopt;
}

/// Returns the pass if an order may hold it back; forwards of evaluation rounds are never held back.
template <class Command>
std::optional<StagePass> OrderedPass(const Command& x) {
  if constexpr (std::is_same_v<Command, RunForward>) {
    if (!x.pass.train) return std::nullopt;
  }
  return PassOf(x);
}

/// Calls `send` when all replicas that share experts with the one at `first_rank` have come to `pass`.
void Meet(LockStepState& s, const StagePass& pass, int first_rank, std::function<void()> send) {
  const auto replicas = s.config.replicas.find({pass.stage, first_rank});
  if (replicas == s.config.replicas.end()) return send();
  const std::vector<int>& all = replicas->second.first_ranks;
  auto meeting = std::ranges::find_if(s.meetings, [&](const LockStepState::Meeting& open) {
    return open.pass == pass && open.replicas->first_ranks == all;
  });
  if (meeting == s.meetings.end()) {
    s.meetings.push_back({&replicas->second, pass, {}});
    meeting = std::prev(s.meetings.end());
  }
  meeting->sends.emplace(first_rank, std::move(send));
  if (meeting->sends.size() < all.size()) return;
  const auto sends = std::move(meeting->sends);
  s.meetings.erase(meeting);
  for (const auto& [rank, each] : sends) each();
}

/// Sends the held passes whose turn has come in the order of `rank`.
void SendInOrder(LockStepState& s, int rank) {
  const DeviceOrder& order = s.config.orders.at(rank).order;
  auto& held = s.held[rank];
  std::size_t& turn = s.turns[rank];
  while (true) {
    const StagePass& next = order[turn];
    const auto found = std::ranges::find_if(held, [&](const auto& waiting) {
      return waiting.pass.stage == next.stage && waiting.pass.pass.kind == next.pass.kind;
    });
    if (found == held.end()) return;
    const auto send = std::move(found->send);
    held.erase(found);
    turn = (turn + 1) % order.size();  // rounds repeat
    send();
  }
}

/// The answers to one set.
template <class Answer>
struct Gather {
  Promise<FromSet<Answer>> promise;
  FromSet<Answer> answers;
  std::size_t missing = 0;
  bool failed = false;
};

template <class Answer, class Command>
void Send(LockStepPointer self, const ToSet<Command>& set,
          const std::shared_ptr<Gather<Answer>>& gather) {
  for (std::size_t i = 0; i < set.parts.size(); ++i) {
    const auto& [rank, command] = set.parts[i];
    self->request(self->state.config.devices.at(rank), caf::infinite, command)
        .then(
            [gather, i](const Answer& answer) {
              gather->answers.parts[i] = answer;
              if (--gather->missing > 0 || gather->failed) return;
              gather->promise.deliver(std::move(gather->answers));
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
    const auto met = PassOf(command);
    const bool meets = met && s.config.replicas.contains({met->stage, first_rank});
    const auto pass = OrderedPass(command);
    const auto order = s.config.orders.find(first_rank);
    // A colocated encoder shares the rank and has no part in its order.
    const bool held =
        pass && order != s.config.orders.end() && order->second.stages.contains(pass->stage);
    if (!held && !meets) {
      Send<Answer>(self, set, gather);
      return gather->promise;
    }
    const auto now = [self, set, gather] { Send<Answer>(self, set, gather); };
    const std::function<void()> send =
        meets ? [&s, pass = *met, first = first_rank, now] { Meet(s, pass, first, now); }
              : std::function<void()>(now);
    if (!held) {
      send();
    } else {
      s.held[first_rank].push_back({*pass, send});
      SendInOrder(s, first_rank);
    }
    return gather->promise;
  };
}

RequestKind CommandOf(PassKind kind) {
  if (kind == PassKind::kForward) return KindOf<RunForward>();
  return kind == PassKind::kBackward ? KindOf<RunBackward>() : KindOf<RunBackwardWeights>();
}

/// The passes that those held back wait for.
ExpectedWaits ExpectedBy(const LockStepState& s) {
  ExpectedWaits expected;
  for (const auto& [rank, held] : s.held) {
    if (held.empty()) continue;
    const LockStepOrder& order = s.config.orders.at(rank);
    const auto turn = s.turns.find(rank);
    const StagePass& next = order.order[turn == s.turns.end() ? 0 : turn->second];
    expected.push_back({ExpectedWait::What::kTurn, CommandOf(next.pass.kind), next.pass.unit,
                        order.stages.at(next.stage), rank});
  }
  for (const LockStepState::Meeting& open : s.meetings) {
    for (std::size_t i = 0; i < open.replicas->stages.size(); ++i) {
      if (open.sends.contains(open.replicas->first_ranks[i])) continue;
      expected.push_back({ExpectedWait::What::kRequest, CommandOf(open.pass.pass.kind),
                          open.pass.pass.unit, open.replicas->stages[i]});
    }
  }
  return expected;
}

}  // namespace

LockStep::behavior_type RunLockStep(LockStepPointer self, LockStepConfig config) {
  LockStepState& s = self->state;
  s.config = std::move(config);
  self->Expects([&s] { return ExpectedBy(s); });
  return {Handler<RunForward, ForwardDone>(self),
          Handler<RunBackward, BackwardDone>(self),
          Handler<RunBackwardWeights, BackwardWeightsDone>(self),
          Handler<ReduceGradients, GradientsReduced>(self),
          Handler<UpdateParameters, ParametersUpdated>(self),
          Handler<RunExchange, ExchangeDone>(self),
          Handler<OffloadState, StateOffloaded>(self),
          Handler<RestoreState, StateRestored>(self),
          Handler<Inspect, Inspected>(self),
          Handler<CopyState, StateCopied>(self),
          Handler<SaveShard, ShardStored>(self),
          Handler<LoadShard, ShardLoaded>(self)};
}

}  // namespace troupe
