#include "data/epochs.hpp"

#include <catch2/catch.hpp>

#include "data/rows/data_error.hpp"

namespace troupe {

TEST_CASE("the end of the last epoch fills part of a step, which counts", "[data]") {
  CHECK(StepsOfEpochs(1, 600, 32) == 19);
  CHECK(StepsOfEpochs(1, 608, 32) == 19);
  CHECK(StepsOfEpochs(1, 609, 32) == 20);
  CHECK(StepsOfEpochs(1, 5, 32) == 1);
  // Epochs before the last end within a step: 1,800 samples, not 3 times 19 steps.
  CHECK(StepsOfEpochs(3, 600, 32) == 57);
  CHECK(StepsOfEpochs(3, 10, 4) == 8);
}

TEST_CASE("parts of epochs are exact in decimals", "[data]") {
  CHECK(StepsOfEpochs(0.1, 30, 3) == 1);
  CHECK(StepsOfEpochs(0.3, 10, 1) == 3);
  CHECK(StepsOfEpochs(2.5, 10, 5) == 5);
  CHECK(StepsOfEpochs(1e-9, 10, 5) == 1);
}

TEST_CASE("a run that has read samples has the rest of its epochs before it", "[data]") {
  CHECK(StepsOfEpochs(2, 1000, 50, 1500) == 10);
  CHECK(StepsOfEpochs(2, 1000, 7, 1500) == 72);
  CHECK(StepsOfEpochs(1, 100, 10, 100) == 0);
  CHECK(StepsOfEpochs(1, 100, 10, 160) == 0);
}

TEST_CASE("more steps than can be counted are refused", "[data]") {
  CHECK(StepsOfEpochs(2147483647, 8, 8) == 2147483647);
  CHECK_THROWS_WITH(StepsOfEpochs(1e18, 600, 32),
                    "run.epochs: expected at most 2147483647 steps, got more with 600 rows and 32 "
                    "samples in a step");
}

TEST_CASE("a configuration gets the steps that its epochs mean", "[data]") {
  Config config;
  config.modules.emplace_back();
  config.modules[0].ranks = {0};
  config.schedule.micro_batch_size = 4;
  config.schedule.microbatches = 2;
  config.run.steps = 77;
  CHECK(WithSteps(config, 30).run.steps == 77);
  config.run.epochs = 2.0;
  CHECK(WithSteps(config, 30).run.steps == 8);
}

}  // namespace troupe
