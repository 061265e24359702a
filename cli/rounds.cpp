#include "cli/rounds.hpp"

#include <utility>
#include <vector>

namespace troupe {
namespace {

RoundPlan PlanOf(std::vector<Round> rounds) {
  return [rounds = std::move(rounds)](std::int64_t number) -> std::optional<Round> {
    if (number >= std::ssize(rounds)) return std::nullopt;
    Round round = rounds[static_cast<std::size_t>(number)];
    round.number = number;
    return round;
  };
}

Round TrainingRound(const Config& config, std::int64_t step) {
  return {0, true, step, config.schedule.microbatches, 1.0};
}

}  // namespace

RoundPlan TrainingPlan(const Config& config, std::int64_t held_out) {
  const std::int64_t samples = config.samples_per_microbatch();
  const Round evaluation{0, false, 0, (held_out + samples - 1) / samples, 1.0};
  const std::int64_t every = config.run.evaluate_every;
  std::vector<Round> rounds;
  const auto evaluate = [&](std::int64_t steps_done) {
    if (held_out == 0) return;
    rounds.push_back(evaluation);
    rounds.back().step = steps_done;
  };
  evaluate(0);
  for (std::int64_t step = 0; step < config.run.steps; ++step) {
    rounds.push_back(TrainingRound(config, step));
    const bool last = step + 1 == config.run.steps;
    if (last || (every > 0 && (step + 1) % every == 0)) evaluate(step + 1);
  }
  return PlanOf(std::move(rounds));
}

RoundPlan StepsOnly(const Config& config, std::int64_t steps) {
  std::vector<Round> rounds;
  for (std::int64_t step = 0; step < steps; ++step) rounds.push_back(TrainingRound(config, step));
  return PlanOf(std::move(rounds));
}

}  // namespace troupe
