#include "actors/feed_actor.hpp"

#include <exception>
#include <utility>

#include "modules/unit_samples.hpp"

namespace troupe {
namespace {

using Self = ActorPointer<Feed, FeedState>;

void Pump(Self self);

void Fail(Self self, const std::string& cause) {
  if (std::exchange(self->state.failed, true)) return;
  self->state.config.abort->Raise(cause);
}

void Deliver(Self self, const Input& input) {
  FeedState& s = self->state;
  s.out[input.unit] = s.config.stages.size();
  for (const Stage& stage : s.config.stages) {
    self->request(stage, caf::infinite, input)
        .then(
            [self, &s](const InputTaken& taken) {
              const auto found = s.out.find(taken.unit);
              if (--found->second == 0) s.out.erase(found);
              Pump(self);
            },
            [self](const caf::error& reason) { Fail(self, TextOf(reason)); });
  }
}

/// Loads and delivers the next unit if there is room. The only place that loads.
void Pump(Self self) {
  FeedState& s = self->state;
  while (!s.failed && !s.rounds.empty() &&
         s.out.size() < static_cast<std::size_t>(s.config.ahead)) {
    const Round& round = s.rounds.front();
    Input input{s.unit++, nullptr};
    try {
      input.data = s.config.source->Load(s.config.module, s.config.dp, round, s.unit_in_round);
    } catch (const std::exception& e) {
      return Fail(self, "feed of " + s.config.module + " dp" + std::to_string(s.config.dp) + ": " +
                            e.what());
    }
    if (++s.unit_in_round == UnitsIn(round.microbatches, s.config.microbatches_per_unit)) {
      s.unit_in_round = 0;
      s.rounds.pop_front();
    }
    Deliver(self, input);
  }
}

}  // namespace

Feed::behavior_type RunFeed(Self self, FeedConfig config) {
  self->state.config = std::move(config);
  return {[self](const RoundBegin& begin) {
            self->state.rounds.push_back(begin.round);
            Pump(self);
          },
          [](const ReportWaits&) { return Waits{}; }};
}

}  // namespace troupe
