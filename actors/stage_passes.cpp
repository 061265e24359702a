// The passes of a stage: what its devices are told, and what becomes of their answers.
#include <utility>

#include "actors/stage_checks.hpp"
#include "actors/stage_commands.hpp"
#include "actors/stage_counts.hpp"
#include "actors/stage_parts.hpp"

namespace troupe {
namespace {

/// For errors.
template <class Command>
void SetPlace(ToSet<Command>& set, const UnitPlace& place) {
  for (auto& [rank, command] : set.parts) command.place = place;
}
template <class Command>
void SetSamples(ToSet<Command>& set, const std::vector<std::string>& samples) {
  for (auto& [rank, command] : set.parts) command.samples = samples;
}

/// For a message whose receiver fetches `shard`, as the fetchers of its link say.
Buffer Towards(const StageState& s, const std::vector<ProcessId>& fetchers, std::size_t shard,
               const Buffer& buffer) {
  return shard < fetchers.size() ? s.config.tensors->Push(buffer, fetchers[shard]) : buffer;
}

/// Forward `unit` is done on all shards: pass its output on and answer whoever needs no gradient.
void OnForwardDone(StagePointer self, std::int64_t unit, const FromSet<ForwardDone>& done) {
  StageState& s = self->state;
  if (s.failed) return;
  s.running.pop_front();
  ++s.forwards_done;
  StageState::Flight& flight = s.flights.at(unit);
  auto& report = s.rounds.front().report;
  for (const auto& part : done.parts) report.busy_ns += part.busy_ns;
  report.loss += done.parts.front().result.loss;
  if (s.config.out.empty()) report.loss.sequence_tokens += flight.num_tokens;

  for (std::size_t l = 0; l < flight.askers.size(); ++l) {
    if (NeedsBackward(s) && s.config.in[l].carries_gradient) continue;
    flight.answered[l] = true;
    flight.askers[l].deliver(Gradient{unit, {}});
  }
  if (flight.feed.pending()) flight.feed.deliver(InputTaken{unit});

  flight.sent = true;
  for (std::size_t l = 0; l < s.config.out.size(); ++l) {
    Activation activation{unit, s.config.out[l].link, {}, flight.rows, PlaceOf(s, unit)};
    for (std::size_t i = 0; i < done.parts.size(); ++i) {
      activation.shards.push_back(
          Towards(s, s.config.out_fetchers.at(l), i, done.parts[i].result.outputs.at(l)));
    }
    self->request(s.config.out[l].to, caf::infinite, std::move(activation))
        .then([self, l](const Gradient& gradient) { OnGradient(self, l, gradient); },
              [self](const caf::error& reason) { Fail(self, reason); });
  }
  Pump(self);
}

void StartForward(StagePointer self, std::int64_t unit) {
  StageState& s = self->state;
  const Round& round = s.rounds.front().round;
  StageState::Flight& flight = s.flights[unit];
  flight.gradients.resize(s.config.out.size());
  flight.missing.resize(s.config.out.size());
  flight.announced.resize(s.config.out.size());

  ForwardPass pass;
  pass.unit = unit;
  pass.train = NeedsBackward(s);
  pass.loss_scale = round.loss_scale;
  if (s.config.reads_data) {
    pass.data = std::move(s.fed.front().input.data);
    flight.feed = std::move(s.fed.front().asker);
    flight.samples = std::move(s.fed.front().input.samples);
    s.fed.pop_front();
    flight.num_tokens = pass.data->num_tokens;
  }
  std::vector<std::vector<Buffer>> inputs;  // by link, then shard
  for (std::size_t l = 0; l < s.arrived.size(); ++l) {
    StageState::Arrived arrived = std::move(s.arrived[l].front());
    s.arrived[l].pop_front();
    flight.askers.push_back(std::move(arrived.asker));
    flight.answered.push_back(false);
    if (pass.data) {
      const auto text = RowMismatch(s.config, static_cast<int>(l), PlaceOf(s, unit),
                                    arrived.activation, *pass.data);
      if (!text.empty()) return Fail(self, MakeFailure(text));
    }
    if (l == 0) flight.rows = arrived.activation.rows;
    inputs.push_back(std::move(arrived.activation.shards));
  }
  if (!flight.rows && pass.data) {
    flight.rows = std::shared_ptr<const RowTable>(pass.data, &pass.data->table);
  }

  ToSet<RunForward> set = ForwardCommands(s.config, round.number, pass, inputs);
  SetPlace(set, PlaceOf(s, unit));
  SetSamples(set, flight.samples);
  self->request(s.config.devices, caf::infinite, std::move(set))
      .then([self, unit](const FromSet<ForwardDone>& done) { OnForwardDone(self, unit, done); },
            [self](const caf::error& reason) { Fail(self, reason); });
}

/// Backward `unit` is done on all shards: answer every asker that still waits.
void OnBackwardDone(StagePointer self, std::int64_t unit, const FromSet<BackwardDone>& done) {
  StageState& s = self->state;
  if (s.failed) return;
  s.running.pop_front();
  for (const auto& part : done.parts) s.rounds.front().report.busy_ns += part.busy_ns;
  StageState::Flight flight = std::move(s.flights.at(unit));
  s.flights.erase(unit);
  for (std::size_t l = 0; l < flight.askers.size(); ++l) {
    if (flight.answered[l]) continue;
    Gradient gradient{unit, {}};
    for (std::size_t i = 0; i < done.parts.size(); ++i) {
      gradient.shards.push_back(
          Towards(s, s.config.in_fetchers.at(l), i, done.parts[i].result.gradients.at(l)));
    }
    flight.askers[l].deliver(std::move(gradient));
  }
  Pump(self);
}

void StartBackward(StagePointer self, std::int64_t unit) {
  StageState& s = self->state;
  ToSet<RunBackward> set =
      BackwardCommands(s.config, s.rounds.front().round.number, unit, s.flights.at(unit).gradients);
  SetPlace(set, PlaceOf(s, unit));
  SetSamples(set, s.flights.at(unit).samples);
  self->request(s.config.devices, caf::infinite, std::move(set))
      .then([self, unit](const FromSet<BackwardDone>& done) { OnBackwardDone(self, unit, done); },
            [self](const caf::error& reason) { Fail(self, reason); });
}

/// The weights' part of backward `unit`: only the devices know what it takes.
void StartWeights(StagePointer self, std::int64_t unit) {
  StageState& s = self->state;
  ToSet<RunBackwardWeights> set = WeightCommands(s.config, s.rounds.front().round.number, unit);
  SetPlace(set, PlaceOf(s, unit));
  const auto done = [self](const FromSet<BackwardWeightsDone>& answers) {
    StageState& state = self->state;
    if (state.failed) return;
    state.running.pop_front();
    for (const auto& part : answers.parts) state.rounds.front().report.busy_ns += part.busy_ns;
    Pump(self);
  };
  self->request(s.config.devices, caf::infinite, std::move(set))
      .then(done, [self](const caf::error& reason) { Fail(self, reason); });
}

}  // namespace

void StartPass(StagePointer self, const Pass& pass) {
  switch (pass.kind) {
    case PassKind::kForward:
      return StartForward(self, pass.unit);
    case PassKind::kBackward:
      return StartBackward(self, pass.unit);
    case PassKind::kWeight:
      return StartWeights(self, pass.unit);
  }
}

}  // namespace troupe
