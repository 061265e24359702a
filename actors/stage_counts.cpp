#include "actors/stage_counts.hpp"

#include <algorithm>

#include "modules/unit_samples.hpp"

namespace troupe {

bool NeedsBackward(const StageState& s) {
  return s.rounds.front().round.train && s.config.runs_backward;
}

const StageRule& RuleOf(const StageState& s) {
  const bool backward = !s.rounds.empty() && NeedsBackward(s);
  return backward ? s.config.rule : s.config.rule_without_backward;
}

UnitPlace PlaceOf(const StageState& s, std::int64_t unit) {
  std::int64_t number = unit - s.counters.round_begin;
  for (const StageState::OpenRound& open : s.rounds) {
    const std::int64_t units = UnitsIn(open.round.microbatches, s.config.microbatches_per_unit);
    if (number >= 0 && number < units) {
      return {open.round.train ? open.round.step + 1 : UnitPlace::kEvaluation, number,
              s.config.microbatches_per_unit != 1};
    }
    number -= units;
  }
  return {};
}

void CountActivations(StageState& s, std::size_t link) {
  const auto& waiting = s.arrived[link];
  const auto next = [&] {
    return static_cast<std::size_t>(s.activations[link] - s.counters.forwards);
  };
  while (next() < waiting.size() && waiting[next()].missing == 0) ++s.activations[link];
}

void CountGradients(StageState& s, std::size_t link) {
  for (auto next = s.flights.find(s.gradients[link]);
       next != s.flights.end() && next->second.announced[link] && next->second.missing[link] == 0;
       next = s.flights.find(s.gradients[link])) {
    ++s.gradients[link];
  }
}

void Recount(StageState& s) {
  auto& c = s.counters;
  c.busy = s.running.size() >= s.config.queued_passes;
  c.activations = s.config.reads_data ? s.inputs : c.horizon;
  for (const auto n : s.activations) c.activations = std::min(c.activations, n);
  if (s.gradients.empty()) {
    // At a sink the loss answers at once; and since devices run what they have in order, a
    // backward may follow its forward to them before that is done.
    c.gradients = NeedsBackward(s) ? c.forwards : s.forwards_done;
  } else {
    c.gradients = *std::min_element(s.gradients.begin(), s.gradients.end());
  }
}

}  // namespace troupe
