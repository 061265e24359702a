#include "actors/feed_actor.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace troupe {
namespace {

using FeedPointer = ActorPointer<Feed, FeedState>;

void Pump(FeedPointer self);

void Fail(FeedPointer self, Failure failure) {
  if (failure.actors.empty()) failure.actors = {self->state.config.name};
  Fail(self, MakeFailure(failure));
}

void Deliver(FeedPointer self, const Input& input) {
  FeedState& s = self->state;
  for (std::size_t i = 0; i < s.config.stages.size(); ++i) {
    s.out[input.unit].insert(i);
    self->request(s.config.stages[i], caf::infinite, input)
        .then(
            [self, &s, i, unit = input.unit](const InputTaken& taken) {
              if (taken.unit != unit) {
                return Fail(self, s.config.name + ": expected that a stage takes input " +
                                      std::to_string(unit) + ", got " + std::to_string(taken.unit));
              }
              const auto found = s.out.find(unit);
              found->second.erase(i);
              if (found->second.empty()) s.out.erase(found);
              Pump(self);
            },
            [self](const caf::error& reason) { Fail(self, FailureOf(reason)); });
  }
}

/// "feed of vision dp2 (step 4 mb 1)": the unit is counted within its step.
std::string NameWithUnit(const FeedState& s, const FeedUnit& unit) {
  return s.config.name + " (" + RoundName(unit.round) +
         (s.config.units.is_window() ? " window " : " mb ") + std::to_string(unit.unit) + ")";
}

/// The units that are untaken by the stage which has taken most.
std::size_t Untaken(const FeedState& s) {
  std::size_t fewest = s.out.size();
  for (std::size_t i = 0; i < s.config.stages.size(); ++i) {
    const auto untaken =
        std::ranges::count_if(s.out, [i](const auto& unit) { return unit.second.contains(i); });
    fewest = std::min(fewest, static_cast<std::size_t>(untaken));
  }
  return fewest;
}

void Ask(FeedPointer self, FeedState::Ordered& ordered) {
  FeedState& s = self->state;
  const Units units = s.config.units.In(ordered.unit.round.microbatches);
  PrepareUnit ask{.number = ordered.number,
                  .microbatch = s.microbatches + ordered.unit.unit * units.microbatches_each,
                  .samples = {}};
  try {
    ask.samples = s.config.source->TicketsOf(ordered.unit);
  } catch (const std::exception& e) {
    ordered.failure = Failure(e.what());
    return;
  }
  const auto done = [self, number = ordered.number](auto keep) {
    keep(*std::ranges::find(self->state.ordered, number, &FeedState::Ordered::number));
    Pump(self);
  };
  self->request(s.config.dispatcher, caf::infinite, ask)
      .then(
          [done](const UnitPrepared& prepared) {
            done([&](FeedState::Ordered& asked) {
              asked.samples = prepared.samples;
              asked.delay = prepared.delay;
            });
          },
          [done](const caf::error& reason) {
            done([&](FeedState::Ordered& asked) { asked.failure = FailureOf(reason); });
          });
}

/// Orders the next unit. The samples of a source that has none to prepare are there at once.
void OrderNext(FeedPointer self) {
  FeedState& s = self->state;
  const Round& round = s.rounds.front();
  FeedState::Ordered& ordered = s.ordered.emplace_back(FeedState::Ordered{
      .unit = {s.config.module, s.config.dp, round, s.unit_in_round}, .number = s.unit});
  ++s.unit;
  if (s.config.dispatcher) {
    Ask(self, ordered);
  } else {
    ordered.samples.emplace();
  }
  if (++s.unit_in_round == s.config.units.In(round.microbatches).count) {
    s.unit_in_round = 0;
    s.microbatches += round.microbatches;
    s.rounds.pop_front();
  }
}

/// Makes the inputs of the oldest unit that is ordered and sends them.
void DeliverOldest(FeedPointer self) {
  FeedState& s = self->state;
  FeedState::Ordered ordered = std::move(s.ordered.front());
  s.ordered.pop_front();
  if (ordered.failure) {
    return Fail(self, NameWithUnit(s, ordered.unit) + ": " + ordered.failure->text);
  }
  Input input{ordered.number, nullptr, {}, ordered.delay};
  try {
    input.data = s.config.source->Assemble(ordered.unit, *ordered.samples);
    input.samples = input.data->names;
  } catch (const std::exception& e) {
    return Fail(self, NameWithUnit(s, ordered.unit) + ": " + e.what());
  }
  ordered.samples.reset();
  if (s.config.dispatcher) self->send(s.config.dispatcher, SamplesUsed{ordered.number});
  Deliver(self, input);
}

/// The only place that orders and delivers units.
void Pump(FeedPointer self) {
  FeedState& s = self->state;
  while (!self->failed()) {
    while (!s.rounds.empty() && s.ordered.size() < static_cast<std::size_t>(s.config.prefetch)) {
      OrderNext(self);
    }
    const bool ready =
        !s.ordered.empty() && (s.ordered.front().samples.has_value() || s.ordered.front().failure);
    if (!ready || Untaken(s) >= static_cast<std::size_t>(s.config.ahead)) return;
    DeliverOldest(self);
  }
}

}  // namespace

Feed::behavior_type RunFeed(FeedPointer self, FeedConfig config) {
  self->state.config = std::move(config);
  return {[self](const RoundBegin& begin) {
    FeedState& s = self->state;
    if (begin.round.number != s.next_round++) {
      return Fail(self, WrongRound(s.config.name, s.next_round - 1, begin.round));
    }
    s.rounds.push_back(begin.round);
    Pump(self);
  }};
}

}  // namespace troupe
