#include "plan/utilisation.hpp"

#include <catch2/catch.hpp>

#include "plan/model_flops.hpp"
#include "tests/plan/small_config.hpp"

namespace troupe {
namespace {

StepShape SampleOf(std::int64_t tokens, std::int64_t labels, std::int64_t images) {
  return {.samples = 1,
          .tokens = tokens,
          .labels = labels,
          .lengths = {{"vision", images}, {"audio", 1}}};
}

}  // namespace

TEST_CASE("utilisation is the model's operations over what the devices can do", "[plan]") {
  Config config = SmallModulesConfig();
  config.cluster.ranks = 7;
  config.modules[0].ranks = {0, 1, 2, 3};
  config.modules[1].ranks = {4};
  config.modules[2].ranks = {5, 6};
  config.cluster.peak_tflops = 0.5;
  const std::vector<StepShape> samples = {SampleOf(10, 3, 1), SampleOf(16, 5, 0),
                                          SampleOf(10, 2, 2)};
  std::map<std::string, double> flops;
  double total = 0.0;
  for (const StepShape& sample : samples) {
    for (const PartFlops& part : StepFlops(config, sample)) flops[part.name] += part.flops.total();
    total += TotalFlops(StepFlops(config, sample));
  }
  const Utilisation utilisation = UtilisationOf(config, samples, 4.0);
  CHECK(utilisation.mfu == Approx(total / (4.0 * 0.5e12 * 7)));
  const std::map<std::string, int> ranks = {{"vision", 4},
                                            {"audio", 1},
                                            {"language", 2},
                                            {"vision_to_language", 4},
                                            {"audio_to_language", 2}};
  REQUIRE(utilisation.parts.size() == ranks.size());
  for (const PartUtilisation& part : utilisation.parts) {
    INFO(part.name);
    CHECK(part.mfu == Approx(flops.at(part.name) / (4.0 * 0.5e12 * ranks.at(part.name))));
  }
}

TEST_CASE("ranks that share a GPU count as shares of it", "[plan]") {
  Config config = SmallModulesConfig();
  config.cluster.ranks = 2;
  config.cluster.peak_tflops = 2.0;
  const std::vector<StepShape> samples = {SampleOf(10, 3, 1)};
  const double alone = UtilisationOf(config, samples, 1.0).mfu;
  config.cluster.ranks_per_gpu = 2;
  CHECK(UtilisationOf(config, samples, 1.0).mfu == alone);  // ranks of a CPU share nothing
  config.cluster.backend = Backend::kCuda;
  CHECK(UtilisationOf(config, samples, 1.0).mfu == Approx(2.0 * alone));
  CHECK(UtilisationText(config) ==
        "MFU = operations of the model / (seconds * peak * GPUs), 2 TFLOP/s per GPU on 1 GPUs");
}

TEST_CASE("without a stated peak there is no utilisation", "[plan]") {
  const Config config = SmallModulesConfig();
  CHECK(UtilisationOf(config, {SampleOf(10, 3, 1)}, 1.0).parts.empty());
  CHECK(UtilisationText(config) == "no MFU in TensorBoard: cluster.peak_tflops is not stated");
}

}  // namespace troupe
