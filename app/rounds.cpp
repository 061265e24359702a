#include "app/rounds.hpp"

#include <algorithm>

namespace troupe {
namespace {

Round TrainingRound(const Config& config, std::int64_t number, std::int64_t step) {
  return {number, true, step, config.schedule.microbatches, 1.0};
}

}  // namespace

RoundPlan TrainingPlan(const Config& config, std::int64_t held_out) {
  if (held_out == 0) return StepsOnly(config, config.run.steps);
  const std::int64_t samples = config.samples_per_microbatch();
  const std::int64_t microbatches = (held_out + samples - 1) / samples;
  const std::int64_t steps = config.run.steps;
  const std::int64_t every = config.run.evaluate_every > 0 ? config.run.evaluate_every : steps;
  // Blocks of an evaluation and `every` steps. The last may be shorter and ends with an evaluation.
  return [=](std::int64_t number) -> std::optional<Round> {
    const std::int64_t place = number % (every + 1);
    const std::int64_t step = number / (every + 1) * every + std::max<std::int64_t>(place - 1, 0);
    if (place > 0 && step < steps) return TrainingRound(config, number, step);
    // Place 1 follows the evaluation of the same step.
    if (step > steps || place == 1) return std::nullopt;
    return Round{number, false, step, microbatches, 1.0};
  };
}

RoundPlan ResumeAfter(const RoundPlan& plan, std::int64_t steps) {
  std::int64_t first = 0;
  for (auto round = plan(first); round && round->step < steps; round = plan(first)) ++first;
  // An evaluation after exactly `steps` steps comes before the next training round and is repeated.
  // Numbers restart at 0: they count the rounds of this start of the run.
  return [=](std::int64_t number) {
    auto round = plan(first + number);
    if (round) round->number = number;
    return round;
  };
}

RoundPlan StepsOnly(const Config& config, std::int64_t steps) {
  return [=](std::int64_t number) -> std::optional<Round> {
    if (number >= steps) return std::nullopt;
    return TrainingRound(config, number, number);
  };
}

}  // namespace troupe
