#include "app/rounds.hpp"

#include <algorithm>

namespace troupe {

std::int64_t PlaceAfter(const Config& config, const RunStart& start, std::int64_t step) {
  return start.place + (step - start.step) * config.global_batch();
}

namespace {

Round TrainingRound(const Config& config, const RunStart& start, std::int64_t step) {
  Round round;
  round.step = step;
  round.microbatches = config.schedule.microbatches;
  round.place = PlaceAfter(config, start, step);
  round.group = start.group > 0 ? start.group : config.global_batch();
  return round;
}

/// Round `number` of a whole run.
std::optional<Round> RoundOfRun(const Config& config, std::int64_t held_out, const RunStart& start,
                                std::int64_t number) {
  const std::int64_t steps = config.run.steps;
  if (held_out == 0) {
    return number < steps ? std::optional(TrainingRound(config, start, number)) : std::nullopt;
  }
  // Blocks of an evaluation and `every` steps. The last may be shorter and ends with an evaluation.
  const std::int64_t every = config.run.evaluate_every > 0 ? config.run.evaluate_every : steps;
  const std::int64_t place = number % (every + 1);
  const std::int64_t step = number / (every + 1) * every + std::max<std::int64_t>(place - 1, 0);
  if (place > 0 && step < steps) return TrainingRound(config, start, step);
  // Place 1 follows the evaluation of the same step.
  if (step > steps || place == 1) return std::nullopt;
  const std::int64_t samples = config.samples_per_microbatch();
  Round evaluation;
  evaluation.train = false;
  evaluation.step = step;
  evaluation.microbatches = (held_out + samples - 1) / samples;
  return evaluation;
}

}  // namespace

RoundPlan TrainingPlan(const Config& config, std::int64_t held_out, const RunStart& start) {
  const auto at = [=](std::int64_t number) { return RoundOfRun(config, held_out, start, number); };
  // An evaluation after exactly `start.step` steps comes before the next training round and is
  // repeated.
  std::int64_t first = 0;
  for (auto round = at(first); round && round->step < start.step; round = at(first)) ++first;
  // Numbers count the rounds of this start of the run.
  return [=](std::int64_t number) {
    auto round = at(first + number);
    if (round) round->number = number;
    return round;
  };
}

RoundPlan StepsOnly(const Config& config, std::int64_t steps) {
  Config only = config;
  only.run.steps = steps;
  return TrainingPlan(only, 0);
}

}  // namespace troupe
