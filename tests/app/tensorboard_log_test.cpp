#include "app/tensorboard_log.hpp"

#include <catch2/catch.hpp>

#include "tests/plan/small_config.hpp"

namespace troupe {

TEST_CASE("the scalars of a step have the rates and norms of every part that trains", "[app]") {
  Config config = SmallModulesConfig();
  config.run.steps = 10;
  config.optimizer.learning_rate = 1e-2;
  config.optimizer.schedule = RateSchedule::kLinear;
  config.modules[1].frozen = true;
  config.edges[0].through->optimizer.learning_rate = 3e-2;
  RoundResult result;
  result.round = {.number = 4, .train = true, .step = 4, .loss_scale = 0.5};
  result.loss.loss = 7.0;
  result.gradient_norm = 5.0;
  result.gradient_norms = {{"language", 4.0}, {"vision", 3.0}};
  StepMetrics metrics;
  metrics.tokens_per_second = 1000.0;
  metrics.samples_per_second = 20.0;
  metrics.bubble = 0.25;
  metrics.memory_bytes = 4096;
  metrics.gpu = MemoryUse{.in_use_bytes = 11, .reserved_bytes = 17, .peak_bytes = 13};
  const Utilisation utilisation{0.4, {{"language", 0.5}, {"vision", 0.125}}};
  // Step 4 of 10 has the factor 0.6.
  const std::vector<Scalar> expected = {{"train/loss", 3.5},
                                        {"learning_rate/vision", 0.6 * 1e-2},
                                        {"learning_rate/language", 0.6 * 1e-2},
                                        {"learning_rate/vision_to_language", 0.6 * 3e-2},
                                        {"learning_rate/audio_to_language", 0.6 * 1e-2},
                                        {"gradient_norm/all", 5.0},
                                        {"gradient_norm/language", 4.0},
                                        {"gradient_norm/vision", 3.0},
                                        {"speed/tokens_per_second", 1000.0},
                                        {"speed/samples_per_second", 20.0},
                                        {"speed/bubble", 0.25},
                                        {"mfu/all", 0.4},
                                        {"mfu/language", 0.5},
                                        {"mfu/vision", 0.125},
                                        {"memory/resident_bytes", 4096.0},
                                        {"memory/gpu_in_use_bytes", 11.0},
                                        {"memory/gpu_peak_bytes", 13.0},
                                        {"memory/gpu_reserved_bytes", 17.0}};
  CHECK(ScalarsOfStep(config, result, metrics, utilisation) == expected);
}

TEST_CASE("several sinks have a loss each, and a CPU no memory of GPUs", "[app]") {
  const Config config = SmallModulesConfig();
  RoundResult result;
  result.sinks = {{"language", {.loss = 8.0, .tokens = 4}},
                  {"caption", {.loss = 3.0, .tokens = 1}}};
  const auto scalars = ScalarsOfStep(config, result, {}, {});
  CHECK(scalars.at(1) == Scalar{"train/loss_language", 2.0});
  CHECK(scalars.at(2) == Scalar{"train/loss_caption", 3.0});
  for (const Scalar& scalar : scalars) {
    INFO(scalar.tag);
    CHECK_FALSE(scalar.tag.starts_with("mfu"));
    CHECK_FALSE(scalar.tag.starts_with("memory/gpu"));
  }
}

TEST_CASE("the scalars of an evaluation are its loss and accuracies", "[app]") {
  RoundResult result;
  result.round.loss_scale = 0.25;
  result.loss = {.loss = 6.0, .tokens = 8, .correct = 2, .content_tokens = 4, .content_correct = 3};
  CHECK(ScalarsOfEvaluation(result) == std::vector<Scalar>{{"held_out/loss", 1.5},
                                                           {"held_out/accuracy", 0.25},
                                                           {"held_out/content_accuracy", 0.75}});
}

}  // namespace troupe
