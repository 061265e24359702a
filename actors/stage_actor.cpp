#include "actors/stage_actor.hpp"

#include <utility>

#include <caf/actor_clock.hpp>

#include "actors/names.hpp"
#include "actors/stage_checks.hpp"
#include "actors/stage_counts.hpp"
#include "actors/stage_parts.hpp"
#include "modules/unit_samples.hpp"

namespace troupe {

void Fail(StagePointer self, const caf::error& reason) {
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

namespace {

/// Fails with `why`, and says so to whoever asked.
caf::error Refuse(StagePointer self, const std::string& why) {
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

void EndRound(StagePointer self) {
  StageState& s = self->state;
  s.updating = false;
  StageState::OpenRound done = std::move(s.rounds.front());
  s.rounds.pop_front();
  done.asker.deliver(std::move(done.report));
  BeginRound(s);
  Pump(self);
}

/// The last unit of the round is retired: step the optimizer if there is one, then report.
void FinishRound(StagePointer self) {
  StageState& s = self->state;
  const Round& round = s.rounds.front().round;
  if (!round.train || !s.config.update) return EndRound(self);
  s.updating = true;
  self->request(s.config.update, caf::infinite,
                BackwardsDone{round.number, s.config.stage, s.config.dp})
      .then([self](const Updated&) { EndRound(self); },
            [self](const caf::error& reason) { Fail(self, reason); });
}

/// Starts the next pass if the rule allows one and says whether it did. The only place that starts
/// work.
bool StartNext(StagePointer self) {
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
  StartPass(self, *pass);
  return true;
}

void Decide(StagePointer self) {
  while (StartNext(self)) {
  }
}

}  // namespace

void Pump(StagePointer self) {
  StageState& s = self->state;
  if (!s.config.virtual_time) return Decide(self);
  if (std::exchange(s.deciding, true)) return;
  self->clock().schedule_message(
      self->clock().now(), caf::strong_actor_ptr(self->ctrl()),
      caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, DecideNow{}));
}

Stage::behavior_type RunStage(StagePointer self, StageConfig config) {
  StageState& s = self->state;
  s.arrived.resize(config.in.size());
  s.announced.resize(config.in.size());
  s.activations.resize(config.in.size());
  s.told.resize(config.out.size());
  s.gradients.resize(config.out.size());
  s.config = std::move(config);
  self->Expects([&s] { return ExpectedBy(s); });
  return {
      [self, &s](const Activation& activation) -> caf::result<Gradient> {
        if (s.failed) return MakeFailure(s.config.abort->cause());
        const auto link = static_cast<std::size_t>(activation.link);
        const std::string wrong = WrongUnit(s, "activation", s.announced.at(link),
                                            s.config.in[link].from, activation.unit);
        if (!wrong.empty()) return Refuse(self, wrong);
        ++s.announced[link];
        auto asker = self->make_response_promise<Gradient>();
        OnActivation(self, activation, asker);
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
        const std::string wrong = WrongUnit(s, "input", s.inputs, s.config.feed, input.unit);
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
  };
}

}  // namespace troupe
