#include "actors/stage_actor.hpp"

#include <algorithm>
#include <utility>

#include <caf/actor_clock.hpp>

#include "layout/at.hpp"

namespace troupe {

bool NeedsBackward(const StageState& s) {
  return s.rounds.front().round.train && s.config.runs_backward;
}

UnitPlace PlaceOf(const StageState& s, std::int64_t unit) {
  std::int64_t number = unit - s.counters.round_begin;
  for (const StageState::OpenRound& open : s.rounds) {
    if (number >= 0 && number < open.units.count) {
      return {open.round.train ? open.round.step + 1 : UnitPlace::kEvaluation, number,
              s.config.units.is_window()};
    }
    number -= open.units.count;
  }
  return {};
}

std::string WrongUnit(const StageState& s, const std::string& kind, std::int64_t expected,
                      const ActorId& from, std::int64_t got) {
  if (got == expected) return {};
  return s.config.name + ": expected the " + kind + " of microbatch " + std::to_string(expected) +
         " from " + ToString(from) + InParentheses(PlaceOf(s, expected)) + ", got " +
         std::to_string(got);
}

namespace {

/// Fails with `why`, which is the answer, too.
caf::error Refuse(StagePointer self, const std::string& why) {
  caf::error reason = MakeFailure(why);
  Fail(self, reason);
  return reason;
}

/// Empty, or why the stage's order does not fit `round`.
std::string WrongLength(const StageConfig& config, const Round& round) {
  const StageRule& rule = config.rule;
  if (rule.kind != RuleKind::kOrdered || !round.train || !config.runs_backward) return {};
  const std::int64_t units = config.units.In(round.microbatches).count;
  const std::int64_t passes = rule.splits_backward ? 3 : 2;
  const auto ordered = static_cast<std::int64_t>(rule.order.size()) / passes;
  if (ordered == units) return {};
  return config.name + ": expected a round of " + std::to_string(ordered) +
         " microbatches, which its order is for, got " + std::to_string(units);
}

/// The rule of the round that is running.
const StageRule& RuleOf(const StageState& s) {
  const bool backward = !s.rounds.empty() && NeedsBackward(s);
  return backward ? s.config.rule : s.config.rule_without_backward;
}

/// Sets the counters of the rule: a unit has arrived when it is complete on all links.
void Recount(StageState& s) {
  auto& c = s.counters;
  c.busy = s.running.size() >= s.config.queued_passes;
  c.activations = s.config.reads_data ? s.inputs_received : c.horizon;
  for (const auto& link : s.in) c.activations = std::min(c.activations, link.complete);
  // At a sink the loss answers at once; and since devices run their commands in order, a backward
  // may follow its forward to them before that is done.
  c.gradients = s.out.empty() && !NeedsBackward(s) ? s.forwards_done : c.forwards;
  for (const auto& link : s.out) c.gradients = std::min(c.gradients, link.complete);
}

void BeginRound(StageState& s) {
  if (s.rounds.empty()) return;
  s.counters.round_begin = s.counters.horizon;
  s.counters.horizon += s.rounds.front().units.count;
}

void EndRound(StagePointer self) {
  StageState& s = self->state;
  s.updating = false;
  StageState::OpenRound done = std::move(s.rounds.front());
  s.rounds.pop_front();
  done.promise.deliver(std::move(done.report));
  BeginRound(s);
  Pump(self);
}

/// The last unit of the round is retired: steps the optimizer if there is one, then reports.
void FinishRound(StagePointer self) {
  StageState& s = self->state;
  const Round& round = s.rounds.front().round;
  if (!round.train || !s.config.update) return EndRound(self);
  s.updating = true;
  Ask(self, s.config.update, BackwardsDone{round.number, s.config.stage, s.config.dp},
      [self](const Updated&) { EndRound(self); });
}

/// Starts the next pass and returns true, if the rule allows one. The only place that starts work.
bool StartNext(StagePointer self) {
  StageState& s = self->state;
  if (self->failed() || s.updating || s.rounds.empty()) return false;
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

/// Whether the rule would run the next forward if all that it needs had arrived.
bool WouldForward(const StageState& s) {
  StageCounters with_it = s.counters;
  with_it.activations = std::max(with_it.activations, s.counters.forwards + 1);
  return NextPass(with_it, RuleOf(s)) == Pass{PassKind::kForward, s.counters.forwards};
}

/// Whether the devices have nothing to do because the input data of the next unit is not there.
bool WaitsForData(const StageState& s) {
  const std::int64_t unit = s.counters.forwards;
  if (!s.config.reads_data || s.inputs_received > unit || !s.running.empty() || s.updating ||
      s.rounds.empty() || unit == s.counters.horizon) {
    return false;
  }
  const auto is_there = [&](const auto& link) { return link.complete > unit; };
  return std::ranges::all_of(s.in, is_there) && WouldForward(s);
}

void EndDataWait(StageState& s, const DataDelay& delay) {
  if (s.data_wait_since_ns == 0) return;
  const std::int64_t ns = NowNs() - std::exchange(s.data_wait_since_ns, 0);
  DataWait& data = s.rounds.front().report.data;
  data.ns += ns;
  if (ns > data.longest_ns) {
    data.longest_ns = ns;
    data.delay = delay;
  }
}

/// A wait that ended because of another pass is named when its input arrives.
void NameDelay(StageState& s, const DataDelay& delay) {
  if (s.rounds.empty()) return;
  DataWait& data = s.rounds.front().report.data;
  if (data.ns > 0 && data.delay.ns == 0) data.delay = delay;
}

void Decide(StagePointer self) {
  while (StartNext(self)) {
  }
  StageState& s = self->state;
  if (!WaitsForData(s)) {
    EndDataWait(s, {});
  } else if (s.data_wait_since_ns == 0) {
    s.data_wait_since_ns = NowNs();
  }
}

/// Adds the messages that the next forward lacks.
void ExpectForward(const StageState& s, ExpectedWaits& expected) {
  using enum ExpectedWait::What;
  const std::int64_t unit = s.counters.forwards;
  if (!WouldForward(s)) return;
  for (std::size_t l = 0; l < s.in.size(); ++l) {
    if (s.in[l].complete > unit) continue;
    expected.push_back({s.in[l].received > unit ? kRequestBytes : kRequest, KindOf<Activation>(),
                        unit, s.config.in[l].from});
  }
  if (s.config.reads_data && s.inputs_received <= unit) {
    expected.push_back({kRequest, KindOf<Input>(), unit, s.config.feed});
  }
}

ExpectedWaits ExpectedBy(const StageState& s) {
  ExpectedWaits expected;
  ExpectForward(s, expected);
  for (const auto& [unit, flight] : s.flights) {
    for (std::size_t l = 0; l < flight.gradients.size(); ++l) {
      if (flight.gradients[l].missing == 0) continue;
      expected.push_back(
          {ExpectedWait::What::kAnswerBytes, KindOf<Activation>(), unit, s.config.out[l].to});
    }
  }
  return expected;
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
  s.in.resize(config.in.size());
  s.out.resize(config.out.size());
  s.config = std::move(config);
  self->Expects([&s] { return ExpectedBy(s); });
  return {
      [self, &s](const Activation& activation) -> caf::result<Gradient> {
        const auto link = At(activation.link);
        const std::string wrong = WrongUnit(s, "activation", s.in.at(link).received,
                                            s.config.in[link].from, activation.unit);
        if (!wrong.empty()) return Refuse(self, wrong);
        auto promise = self->make_response_promise<Gradient>();
        ReceiveActivation(self, activation, promise);
        return promise;
      },
      [self, &s](const RoundBegin& begin) -> caf::result<StageReport> {
        if (begin.round.number != s.next_round++) {
          return Refuse(self, WrongRound(s.config.name, s.next_round - 1, begin.round));
        }
        const std::string wrong = WrongLength(s.config, begin.round);
        if (!wrong.empty()) return Refuse(self, wrong);
        auto promise = self->make_response_promise<StageReport>();
        s.rounds.push_back({begin.round, s.config.units.In(begin.round.microbatches),
                            StageReport{begin.round.number, 0, {}}, promise});
        if (s.rounds.size() == 1) BeginRound(s);
        Pump(self);
        return promise;
      },
      [self, &s](const Input& input) -> caf::result<InputTaken> {
        const std::string wrong =
            WrongUnit(s, "input", s.inputs_received, s.config.feed, input.unit);
        if (!wrong.empty()) return Refuse(self, wrong);
        auto promise = self->make_response_promise<InputTaken>();
        ++s.inputs_received;
        s.inputs.push_back({input, promise});
        EndDataWait(s, input.delay);
        NameDelay(s, input.delay);
        Pump(self);
        return promise;
      },
      [self](const ShardArrived& arrived) { ReceiveShard(self, arrived); },
      [self, &s](const DecideNow&) {
        s.deciding = false;
        Decide(self);
      },
  };
}

}  // namespace troupe
