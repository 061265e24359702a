#include <catch2/catch.hpp>

#include "modules/learning_rate.hpp"

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
  optimizer.schedule = "constant";
  CHECK(ScheduleFactor(optimizer, 0, 10) == 0.5);
  CHECK(ScheduleFactor(optimizer, 2, 10) == 1.0);
  CHECK(ScheduleFactor(optimizer, 9, 10) == 1.0);
}

TEST_CASE("an unknown schedule is refused with the known ones") {
  OptimizerConfig optimizer;
  optimizer.schedule = "linear";
  CHECK_THROWS_WITH(ScheduleFactor(optimizer, 0, 10),
                    "optimizer.schedule: expected \"cosine\" or \"constant\", got \"linear\"");
}
