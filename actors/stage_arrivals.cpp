// The tensors that messages to a stage name: fetched when the message comes, counted when all of
// them are here.
#include <utility>

#include "actors/stage_checks.hpp"
#include "actors/stage_counts.hpp"
#include "actors/stage_parts.hpp"

namespace troupe {
namespace {

/// Fetches the shards that devices of this process will read. Returns how many are on their way:
/// each of these comes as the message that `arrived` was made for.
std::size_t Bring(StagePointer self, std::vector<Buffer>& shards, const ShardArrived& arrived,
                  const std::string& what) {
  StageState& s = self->state;
  std::size_t missing = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].local() || (shards.size() > 1 && !s.config.here.at(i))) continue;
    ++missing;
    ShardArrived message = arrived;
    message.shard = static_cast<int>(i);
    message.asked = s.config.tensors->Asks(shards[i]);
    s.config.tensors->Fetch(
        shards[i],
        s.config.name + ": " + what + " of microbatch " + std::to_string(arrived.unit) +
            InParentheses(PlaceOf(s, arrived.unit)),
        OnBehalf([me = caf::actor_cast<Stage>(self), message](Buffer buffer) mutable {
          message.buffer = std::move(buffer);
          caf::anon_send(me, std::move(message));
        }),
        [abort = s.config.abort](const Failure& failure) { abort->Raise(failure); },
        s.config.on_device.empty() ? Buffer::kHost : s.config.on_device.at(i));
  }
  return missing;
}

}  // namespace

void OnActivation(StagePointer self, const Activation& activation, Promise<Gradient> asker) {
  StageState& s = self->state;
  const auto link = static_cast<std::size_t>(activation.link);
  s.arrived[link].push_back({activation, std::move(asker), 0});
  StageState::Arrived& waiting = s.arrived[link].back();
  waiting.missing = Bring(self, waiting.activation.shards,
                          {false, activation.link, activation.unit, 0, {}, false}, "activation");
  CountActivations(s, link);
  Pump(self);
}

void OnGradient(StagePointer self, std::size_t link, const Gradient& gradient) {
  StageState& s = self->state;
  if (s.failed) return;
  const std::string wrong =
      WrongUnit(s, "gradient", s.told[link], s.config.receivers[link], gradient.unit);
  if (!wrong.empty()) return Fail(self, MakeFailure(wrong));
  ++s.told[link];
  StageState::Flight& flight = s.flights.at(gradient.unit);
  flight.gradients[link] = gradient.shards;
  flight.announced[link] = true;
  flight.missing[link] =
      Bring(self, flight.gradients[link],
            {true, static_cast<int>(link), gradient.unit, 0, {}, false}, "gradient");
  CountGradients(s, link);
  Pump(self);
}

void OnShardArrived(StagePointer self, const ShardArrived& arrived) {
  StageState& s = self->state;
  if (s.failed) return;
  const auto link = static_cast<std::size_t>(arrived.link);
  const auto shard = static_cast<std::size_t>(arrived.shard);
  if (arrived.gradient) {
    StageState::Flight& flight = s.flights.at(arrived.unit);
    flight.gradients[link][shard] = arrived.buffer;
    --flight.missing[link];
    CountGradients(s, link);
    return Pump(self);
  }
  auto& waiting = s.arrived[link].at(static_cast<std::size_t>(arrived.unit - s.counters.forwards));
  waiting.activation.shards[shard] = arrived.buffer;
  --waiting.missing;
  CountActivations(s, link);
  Pump(self);
}

}  // namespace troupe
