#include "actors/lock_step_actor.hpp"

#include <memory>
#include <utility>

namespace troupe {
namespace {

using Self = ActorPointer<LockStep, LockStepState>;

/// The handler for one kind of command.
template <class Command, class Answer>
auto Handler(Self self) {
  struct Gather {
    caf::typed_response_promise<FromSet<Answer>> promise;
    FromSet<Answer> answers;
    std::size_t missing = 0;
    bool failed = false;
  };
  return [self](const ToSet<Command>& set) -> caf::result<FromSet<Answer>> {
    auto gather = std::make_shared<Gather>();
    gather->promise = self->make_response_promise<FromSet<Answer>>();
    gather->missing = set.parts.size();
    gather->answers.parts.resize(set.parts.size());
    if (set.parts.empty()) return FromSet<Answer>{};
    for (std::size_t i = 0; i < set.parts.size(); ++i) {
      const auto& [rank, command] = set.parts[i];
      self->request(self->state.devices.at(rank), caf::infinite, command)
          .then(
              [gather, i](const Answer& answer) {
                gather->answers.parts[i] = answer;
                if (--gather->missing == 0 && !gather->failed) {
                  gather->promise.deliver(std::move(gather->answers));
                }
              },
              [gather](const caf::error& reason) {
                --gather->missing;
                if (!std::exchange(gather->failed, true)) gather->promise.deliver(reason);
              });
    }
    return gather->promise;
  };
}

}  // namespace

LockStep::behavior_type RunLockStep(Self self, std::map<int, Device> devices) {
  self->state.devices = std::move(devices);
  return {Handler<RunForward, ForwardDone>(self),
          Handler<RunBackward, BackwardDone>(self),
          Handler<ReduceGradients, GradientsReduced>(self),
          Handler<UpdateParameters, ParametersUpdated>(self),
          Handler<RunExchange, ExchangeDone>(self),
          Handler<Inspect, Inspected>(self),
          Handler<SaveShard, ShardStored>(self),
          Handler<LoadShard, ShardStored>(self)};
}

}  // namespace troupe
