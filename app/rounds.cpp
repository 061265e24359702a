#include "app/rounds.hpp"

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
  // Round 0 evaluates. Blocks of `every` steps and an evaluation follow; the last may be shorter.
  return [=](std::int64_t number) -> std::optional<Round> {
    const std::int64_t block = number == 0 ? 0 : (number - 1) / (every + 1);
    const std::int64_t place = number == 0 ? 0 : (number - 1) % (every + 1);
    const std::int64_t step = block * every + place;
    if (number > 0 && place < every && step < steps) return TrainingRound(config, number, step);
    const std::int64_t steps_before = block * every;
    if (number > 0 && steps_before >= steps) return std::nullopt;
    if (step > steps) return std::nullopt;
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
