#include "app/rounds.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

/// "E0 T0 T1 E2": evaluations and training steps in order, of a run resumed after `done` steps.
std::string PlanText(std::int64_t steps, std::int64_t every, std::int64_t held_out,
                     std::int64_t done = 0) {
  Config config;
  config.modules.emplace_back();
  config.modules[0].name = "language";
  config.modules[0].ranks = {0};
  config.run.steps = steps;
  config.run.evaluate_every = every;
  const RoundPlan plan = TrainingPlan(config, held_out, {.step = done});
  std::string text;
  for (std::int64_t number = 0;; ++number) {
    const auto round = plan(number);
    if (!round) return text;
    CHECK(round->number == number);
    text += (text.empty() ? "" : " ") + std::string(round->train ? "T" : "E") +
            std::to_string(round->step);
  }
}

}  // namespace

TEST_CASE("a run evaluates first, last and every so many steps between", "[cli]") {
  CHECK(PlanText(3, 0, 5) == "E0 T0 T1 T2 E3");
  CHECK(PlanText(5, 2, 5) == "E0 T0 T1 E2 T2 T3 E4 T4 E5");
  CHECK(PlanText(4, 2, 5) == "E0 T0 T1 E2 T2 T3 E4");
  CHECK(PlanText(3, 1, 5) == "E0 T0 E1 T1 E2 T2 E3");
  CHECK(PlanText(3, 7, 5) == "E0 T0 T1 T2 E3");
  CHECK(PlanText(1, 1, 5) == "E0 T0 E1");
  CHECK(PlanText(2, 0, 0) == "T0 T1");
}

TEST_CASE("a run that resumes numbers its rounds from 0", "[cli]") {
  CHECK(PlanText(5, 2, 5, 2) == "E2 T2 T3 E4 T4 E5");
  CHECK(PlanText(5, 2, 5, 3) == "T3 E4 T4 E5");
  CHECK(PlanText(5, 0, 5, 5) == "E5");
  CHECK(PlanText(3, 0, 0, 1) == "T1 T2");
}

TEST_CASE("a run that resumes with another global batch reads on where it stopped", "[cli]") {
  Config config;
  config.modules.emplace_back();
  config.modules[0].ranks = {0, 1, 2};
  config.modules[0].layout.dp = 3;
  config.schedule.microbatches = 2;
  config.run.steps = 12;
  REQUIRE(config.global_batch() == 6 * config.schedule.micro_batch_size);
  const RoundPlan plan = TrainingPlan(config, 0, {.step = 5, .place = 40, .group = 8});
  CHECK(plan(0)->step == 5);
  CHECK(plan(0)->place == 40);
  CHECK(plan(2)->place == 40 + 2 * config.global_batch());
  CHECK(plan(2)->group == 8);
  CHECK(TrainingPlan(config, 0)(3)->group == config.global_batch());
}

TEST_CASE("a run of billions of steps is planned without listing them", "[cli]") {
  Config config;
  config.modules.emplace_back();
  config.modules[0].ranks = {0};
  config.run.steps = 2'147'483'647;
  const auto last = TrainingPlan(config, 1)(2'147'483'648);
  REQUIRE(last);
  CHECK_FALSE(last->train);
}

}  // namespace troupe
