#include "modules/learning_rate.hpp"

#include <cmath>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>

using namespace troupe;

TEST_CASE("the learning rate rises linearly and falls along a cosine") {
  OptimizerConfig optimizer;
  optimizer.warmup_steps = 4;
  CHECK(ScheduleFactor(optimizer, 0, 12) == 0.25);
  CHECK(ScheduleFactor(optimizer, 1, 12) == 0.5);
  CHECK(ScheduleFactor(optimizer, 3, 12) == 1.0);
  CHECK(ScheduleFactor(optimizer, 4, 12) == 1.0);
  CHECK(ScheduleFactor(optimizer, 6, 12) == Approx(0.5 + 0.5 * std::sqrt(0.5)));
  CHECK(ScheduleFactor(optimizer, 8, 12) == Approx(0.5));
  CHECK(ScheduleFactor(optimizer, 11, 12) == Approx(0.5 - 0.5 * std::cos(std::numbers::pi / 8)));
}

TEST_CASE("the learning rate of a step beyond the planned ones is the lowest") {
  OptimizerConfig optimizer;
  optimizer.warmup_steps = 2;
  CHECK(ScheduleFactor(optimizer, 10, 10) == Approx(0.0).margin(1e-15));
  CHECK(ScheduleFactor(optimizer, 25, 10) == Approx(0.0).margin(1e-15));
}

TEST_CASE("a warm-up longer than the run is only risen along") {
  OptimizerConfig optimizer;
  optimizer.warmup_steps = 20;
  CHECK(ScheduleFactor(optimizer, 9, 10) == 0.5);
  CHECK(ScheduleFactor(optimizer, 19, 10) == 1.0);
}

TEST_CASE("a constant schedule stays up after the warm-up") {
  OptimizerConfig optimizer;
  optimizer.warmup_steps = 2;
  optimizer.schedule = RateSchedule::kConstant;
  CHECK(ScheduleFactor(optimizer, 0, 10) == 0.5);
  CHECK(ScheduleFactor(optimizer, 2, 10) == 1.0);
  CHECK(ScheduleFactor(optimizer, 9, 10) == 1.0);
}

TEST_CASE("a linear schedule falls in a straight line to the 0 of the step after the last") {
  OptimizerConfig optimizer;
  optimizer.warmup_steps = 2;
  optimizer.schedule = RateSchedule::kLinear;
  CHECK(ScheduleFactor(optimizer, 0, 10) == 0.5);
  CHECK(ScheduleFactor(optimizer, 2, 10) == 1.0);
  CHECK(ScheduleFactor(optimizer, 4, 10) == 0.75);
  CHECK(ScheduleFactor(optimizer, 9, 10) == 0.125);
  CHECK(ScheduleFactor(optimizer, 30, 10) == 0.0);
}

TEST_CASE("a warm-up from zero has the factor of the step before") {
  OptimizerConfig optimizer;
  optimizer.warmup_steps = 4;
  optimizer.warmup_from_zero = true;
  CHECK(ScheduleFactor(optimizer, 0, 12) == 0.0);
  CHECK(ScheduleFactor(optimizer, 3, 12) == 0.75);
  CHECK(ScheduleFactor(optimizer, 4, 12) == 1.0);
}

TEST_CASE("a warm-up ratio is rounded up to a step") {
  OptimizerConfig optimizer;
  optimizer.warmup_steps = 77;
  CHECK(WarmupSteps(optimizer, 100) == 77);
  optimizer.warmup_ratio = 0.03;
  CHECK(WarmupSteps(optimizer, 100) == 3);
  CHECK(WarmupSteps(optimizer, 101) == 4);
  CHECK(WarmupSteps(optimizer, 1) == 1);
  optimizer.warmup_ratio = 0.0;
  CHECK(WarmupSteps(optimizer, 100) == 0);
}

// tools/oracle/record_schedules.py has made the file.
TEST_CASE("the learning rates of every step are those of transformers in double precision") {
  std::ifstream file("tests/oracle/schedules.txt");
  std::string word;
  std::string schedule;
  std::string ratio;
  std::int64_t steps = 0;
  std::int64_t warmup = 0;
  double highest = 0.0;
  int num_runs = 0;
  while (file >> word >> schedule >> steps >> ratio >> warmup >> highest) {
    INFO(schedule << " of " << steps << " steps, warm-up " << ratio << " or " << warmup);
    OptimizerConfig optimizer;
    optimizer.warmup_from_zero = true;
    optimizer.warmup_steps = warmup;
    if (ratio != "-") optimizer.warmup_ratio = std::stod(ratio);
    if (schedule == "linear") optimizer.schedule = RateSchedule::kLinear;
    if (schedule == "constant") optimizer.schedule = RateSchedule::kConstant;
    CHECK(WarmupSteps(optimizer, steps) == warmup);
    for (std::int64_t step = 0; step < steps; ++step) {
      INFO("step " << step);
      double recorded = -1.0;
      REQUIRE(file >> recorded);
      // The cosines of two processors may differ in the last bit.
      const double rate = ScheduleFactor(optimizer, step, steps) * highest;
      CHECK(std::abs(rate - recorded) <= 2.3e-16 * highest);
    }
    ++num_runs;
  }
  CHECK(num_runs == 9);
}
