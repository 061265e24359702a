#include "actors/stage_actor.hpp"

#include <utility>

#include <caf/actor_clock.hpp>

#include "actors/names.hpp"
#include "actors/stage_checks.hpp"
#include "actors/stage_commands.hpp"
#include "actors/stage_counts.hpp"
#include "modules/unit_samples.hpp"

namespace troupe {
namespace {

using Self = ActorPointer<Stage, StageState>;

void Pump(Self self);

/// The first failure of this stage: everybody who waits for it learns the reason.
void Fail(Self self, const caf::error& reason) {
  StageState& s = self->state;
  if (std::exchange(s.failed, true)) return;
  s.config.abort->Raise(TextOf(reason));
  for (auto& [unit, flight] : s.flights) {
    for (std::size_t l = 0; l < flight.askers.size(); ++l) {
      if (!flight.answered[l]) flight.askers[l].deliver(reason);
    }
    if (flight.feed.pending()) flight.feed.deliver(reason);
  }
  for (auto& link : s.arrived) {
    for (auto& arrived : link) arrived.asker.deliver(reason);
  }
  for (auto& fed : s.fed) fed.asker.deliver(reason);
  for (auto& open : s.rounds) open.asker.deliver(reason);
  s.flights.clear();
  s.arrived.assign(s.arrived.size(), {});
  s.fed.clear();
  s.rounds.clear();
}

/// Fails with `why`, and says so to whoever asked.
caf::error Refuse(Self self, const std::string& why) {
  const caf::error reason = MakeFailure(why);
  Fail(self, reason);
  return reason;
}

void BeginRound(StageState& s) {
  const StageState::OpenRound* front = s.rounds.empty() ? nullptr : &s.rounds.front();
  if (front == nullptr) return;
  s.counters.round_begin = s.counters.horizon;
  s.counters.horizon += UnitsIn(front->round.microbatches, s.config.microbatches_per_unit);
}

void EndRound(Self self) {
  StageState& s = self->state;
  s.updating = false;
  StageState::OpenRound done = std::move(s.rounds.front());
  s.rounds.pop_front();
  done.asker.deliver(std::move(done.report));
  BeginRound(s);
  Pump(self);
}

/// The last unit of the round is retired: step the optimizer if there is one, then report.
void FinishRound(Self self) {
  StageState& s = self->state;
  const Round& round = s.rounds.front().round;
  if (!round.train || !s.config.update) return EndRound(self);
  s.updating = true;
  self->request(s.config.update, caf::infinite,
                BackwardsDone{round.number, "stage " + s.config.name})
      .then([self](const Updated&) { EndRound(self); },
            [self](const caf::error& reason) { Fail(self, reason); });
}

/// Fetches the shards that devices of this process will read. Returns how many are on their way:
/// each of these comes as the message that `arrived` was made for.
std::size_t Bring(Self self, std::vector<Buffer>& shards, const ShardArrived& arrived,
                  const std::string& what) {
  StageState& s = self->state;
  std::size_t missing = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].local() || (shards.size() > 1 && !s.config.here.at(i))) continue;
    ++missing;
    ShardArrived message = arrived;
    message.shard = static_cast<int>(i);
    s.config.tensors->Fetch(
        shards[i], s.config.name + ": " + what + " of microbatch " + std::to_string(arrived.unit),
        OnBehalf([me = caf::actor_cast<Stage>(self), message](Buffer buffer) mutable {
          message.buffer = std::move(buffer);
          caf::anon_send(me, std::move(message));
        }),
        [abort = s.config.abort](const std::string& error) { abort->Raise(error); },
        s.config.on_device.empty() ? Buffer::kHost : s.config.on_device.at(i));
  }
  return missing;
}

void OnGradient(Self self, std::size_t link, const Gradient& gradient) {
  StageState& s = self->state;
  if (s.failed) return;
  const std::string wrong =
      WrongUnit(s.config, "gradient", s.told[link], s.config.out[link].name, gradient.unit);
  if (!wrong.empty()) return Fail(self, MakeFailure(wrong));
  ++s.told[link];
  StageState::Flight& flight = s.flights.at(gradient.unit);
  flight.gradients[link] = gradient.shards;
  flight.announced[link] = true;
  flight.missing[link] =
      Bring(self, flight.gradients[link], {true, static_cast<int>(link), gradient.unit, 0, {}},
            asked::kGradient);
  CountGradients(s, link);
  Pump(self);
}

void OnShardArrived(Self self, const ShardArrived& arrived) {
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

/// Forward `unit` is done on all shards: pass its output on and answer whoever needs no gradient.
void OnForwardDone(Self self, std::int64_t unit, const FromSet<ForwardDone>& done) {
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
    Activation activation{unit, s.config.out[l].link, {}, flight.rows};
    for (const auto& part : done.parts) activation.shards.push_back(part.result.outputs.at(l));
    self->request(s.config.out[l].to, caf::infinite, std::move(activation))
        .then([self, l](const Gradient& gradient) { OnGradient(self, l, gradient); },
              [self](const caf::error& reason) { Fail(self, reason); });
  }
  Pump(self);
}

void StartForward(Self self, std::int64_t unit) {
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
      const auto text = RowMismatch(s.config, static_cast<int>(l), arrived.activation, *pass.data);
      if (!text.empty()) return Fail(self, MakeFailure(text));
    }
    if (l == 0) flight.rows = arrived.activation.rows;
    inputs.push_back(std::move(arrived.activation.shards));
  }
  if (!flight.rows && pass.data) {
    flight.rows = std::shared_ptr<const RowTable>(pass.data, &pass.data->table);
  }

  ToSet<RunForward> set = ForwardCommands(s.config, round.number, pass, inputs);
  self->request(s.config.devices, caf::infinite, std::move(set))
      .then([self, unit](const FromSet<ForwardDone>& done) { OnForwardDone(self, unit, done); },
            [self](const caf::error& reason) { Fail(self, reason); });
}

/// Backward `unit` is done on all shards: answer every asker that still waits.
void OnBackwardDone(Self self, std::int64_t unit, const FromSet<BackwardDone>& done) {
  StageState& s = self->state;
  if (s.failed) return;
  s.running.pop_front();
  for (const auto& part : done.parts) s.rounds.front().report.busy_ns += part.busy_ns;
  StageState::Flight flight = std::move(s.flights.at(unit));
  s.flights.erase(unit);
  for (std::size_t l = 0; l < flight.askers.size(); ++l) {
    if (flight.answered[l]) continue;
    Gradient gradient{unit, {}};
    for (const auto& part : done.parts) gradient.shards.push_back(part.result.gradients.at(l));
    flight.askers[l].deliver(std::move(gradient));
  }
  Pump(self);
}

void StartBackward(Self self, std::int64_t unit) {
  StageState& s = self->state;
  ToSet<RunBackward> set =
      BackwardCommands(s.config, s.rounds.front().round.number, unit, s.flights.at(unit).gradients);
  self->request(s.config.devices, caf::infinite, std::move(set))
      .then([self, unit](const FromSet<BackwardDone>& done) { OnBackwardDone(self, unit, done); },
            [self](const caf::error& reason) { Fail(self, reason); });
}

/// The weights' part of backward `unit`: only the devices know what it takes.
void StartWeights(Self self, std::int64_t unit) {
  StageState& s = self->state;
  ToSet<RunBackwardWeights> set = WeightCommands(s.config, s.rounds.front().round.number, unit);
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

/// Starts the next pass if the rule allows one and says whether it did. The only place that starts
/// work.
bool StartNext(Self self) {
  StageState& s = self->state;
  if (s.failed || s.updating || s.rounds.empty()) return false;
  Recount(s);
  if (!NeedsBackward(s)) {
    while (s.counters.backwards < s.counters.gradients) s.flights.erase(s.counters.backwards++);
    s.counters.weights = s.counters.backwards;
  }
  const StageRule& rule = RuleOf(s);
  if (AllStarted(s.counters, rule) && s.running.empty()) {
    FinishRound(self);
    return false;
  }
  const auto pass = NextPass(s.counters, rule);
  if (!pass) return false;
  s.running.push_back(*pass);
  CountStarted(s.counters, *pass);
  switch (pass->kind) {
    case PassKind::kForward:
      StartForward(self, pass->unit);
      break;
    case PassKind::kBackward:
      StartBackward(self, pass->unit);
      break;
    case PassKind::kWeight:
      StartWeights(self, pass->unit);
      break;
  }
  return true;
}

void Decide(Self self) {
  while (StartNext(self)) {
  }
}

/// Decides; in virtual time as the simulator does, once all that ends at this instant has ended.
void Pump(Self self) {
  StageState& s = self->state;
  if (!s.config.virtual_time) return Decide(self);
  if (std::exchange(s.deciding, true)) return;
  self->clock().schedule_message(
      self->clock().now(), caf::strong_actor_ptr(self->ctrl()),
      caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, DecideNow{}));
}

}  // namespace

Stage::behavior_type RunStage(Self self, StageConfig config) {
  StageState& s = self->state;
  s.arrived.resize(config.in.size());
  s.announced.resize(config.in.size());
  s.activations.resize(config.in.size());
  s.told.resize(config.out.size());
  s.gradients.resize(config.out.size());
  s.config = std::move(config);
  return {
      [self, &s](const Activation& activation) -> caf::result<Gradient> {
        if (s.failed) return MakeFailure(s.config.abort->cause());
        const auto link = static_cast<std::size_t>(activation.link);
        const std::string wrong = WrongUnit(s.config, "activation", s.announced.at(link),
                                            s.config.in[link].from, activation.unit);
        if (!wrong.empty()) return Refuse(self, wrong);
        ++s.announced[link];
        auto asker = self->make_response_promise<Gradient>();
        s.arrived[link].push_back({activation, asker, 0});
        auto& waiting = s.arrived[link].back();
        waiting.missing = Bring(self, waiting.activation.shards,
                                {false, activation.link, activation.unit, 0, {}}, "activation");
        CountActivations(s, link);
        Pump(self);
        return asker;
      },
      [self, &s](const RoundBegin& begin) -> caf::result<StageReport> {
        if (s.failed) return MakeFailure(s.config.abort->cause());
        if (begin.round.number != s.next_round++) {
          return Refuse(self, WrongRound(s.config.name, s.next_round - 1, begin.round));
        }
        const std::string wrong = WrongLength(s.config, begin.round);
        if (!wrong.empty()) return Refuse(self, wrong);
        auto asker = self->make_response_promise<StageReport>();
        s.rounds.push_back({begin.round, StageReport{begin.round.number, 0, {}}, asker});
        if (s.rounds.size() == 1) BeginRound(s);
        Pump(self);
        return asker;
      },
      [self, &s](const Input& input) -> caf::result<InputTaken> {
        if (s.failed) return MakeFailure(s.config.abort->cause());
        const std::string wrong = WrongUnit(s.config, "input", s.inputs, s.config.feed, input.unit);
        if (!wrong.empty()) return Refuse(self, wrong);
        auto asker = self->make_response_promise<InputTaken>();
        ++s.inputs;
        s.fed.push_back({input, asker});
        Pump(self);
        return asker;
      },
      [self](const ShardArrived& arrived) { OnShardArrived(self, arrived); },
      [self, &s](const DecideNow&) {
        s.deciding = false;
        Decide(self);
      },
      [&s](const ReportWaits&) { return WaitsOf(s); },
  };
}

}  // namespace troupe
