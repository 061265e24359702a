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

/// "feed of vision dp2 (step 4 mb 1)": of the unit that is loaded next, counted within its step.
std::string NameWithUnit(const FeedState& s, const Round& round) {
  return s.config.name + " (" + RoundName(round) +
         (s.config.units.is_window() ? " window " : " mb ") + std::to_string(s.unit_in_round) + ")";
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

/// Loads and delivers the next unit if there is room. The only place that loads.
void Pump(FeedPointer self) {
  FeedState& s = self->state;
  while (!s.rounds.empty() && Untaken(s) < static_cast<std::size_t>(s.config.ahead)) {
    const Round& round = s.rounds.front();
    Input input{s.unit++, nullptr, {}};
    try {
      input.data = s.config.source->Load(s.config.module, s.config.dp, round, s.unit_in_round);
      input.samples = input.data->names;
    } catch (const std::exception& e) {
      return Fail(self, NameWithUnit(s, round) + ": " + e.what());
    }
    if (++s.unit_in_round == s.config.units.In(round.microbatches).count) {
      s.unit_in_round = 0;
      s.rounds.pop_front();
    }
    Deliver(self, input);
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
