#include <catch2/catch.hpp>

#include "plan/memory.hpp"
#include "tests/plan/small_config.hpp"

namespace troupe {
namespace {

// What the small configuration keeps of one sample, by hand, in elements. A layer of "vision" has
// rows of 4 x 8 + 4 x 8 + 2 x 12, and a sum for each of 4 heads; 5 rows, 2 of 3 layers are built.
constexpr std::size_t kVitLayer = 5 * (88 + 4);
constexpr std::size_t kVit = 2 * kVitLayer;
// The projectors take 4 rows of 8, and are 12 and 20 wide before and after the GELU.
constexpr std::size_t kAtSource = 4 * (8 + 12 + 12);
constexpr std::size_t kAtSink = 4 * (8 + 20 + 20);
// 16 tokens through 4 layers, rows of 4 x 16 + 2 x 16 + 8 + 3 x 24 and a sum for each of 8 heads;
// then what the last norm and the head read.
constexpr std::size_t kLlama = 16 * (4 * (176 + 8) + 32);
constexpr std::size_t kFloat = 4;

std::size_t KeptBy(const Config& config, const std::string& module, int pp = 0) {
  return EstimateUnit(config, module, pp).kept;
}

TEST_CASE("frozen parameters cost no gradients and no optimizer state", "[modules]") {
  Config config = SmallModulesConfig();
  const StageMemory trained = EstimateMemory(config, "vision", 0);
  CHECK(trained.gradients == trained.parameters);
  CHECK(trained.optimizer == 2 * trained.parameters);
  CHECK(KeptBy(config, "vision") > 0);
  CHECK(trained.offloaded == 0);
  config.modules[0].offload = Offload::kParameters;
  CHECK(EstimateMemory(config, "vision", 0).offloaded == trained.parameters);
  config.modules[0].offload = Offload::kState;
  CHECK(EstimateMemory(config, "vision", 0).offloaded == 4 * trained.parameters);
  config.modules[0].frozen = true;
  const StageMemory projector = EstimateMemory(config, "vision", 0);
  CHECK(projector.parameters == trained.parameters);
  CHECK(projector.gradients == 4 * (12 * 8 + 12 + 16 * 12 + 16));
  config.edges[0].through->frozen = true;
  CHECK(EstimateMemory(config, "vision", 0).state() == trained.parameters);
  CHECK(EstimateUnit(config, "vision", 0).kept == 0);
}

TEST_CASE("bfloat16 costs a short copy of the parameters, which alone leaves as parameters",
          "[modules]") {
  Config config = SmallModulesConfig();
  const StageMemory whole = EstimateMemory(config, "vision", 0);
  config.run.precision = Precision::kBFloat16;
  config.modules[0].offload = Offload::kParameters;
  const StageMemory mixed = EstimateMemory(config, "vision", 0);
  CHECK(mixed.parameters == whole.parameters);
  CHECK(2 * mixed.rounded == whole.parameters);
  CHECK(mixed.gradients == whole.gradients);
  CHECK(mixed.optimizer == whole.optimizer);
  CHECK(2 * mixed.state() == 9 * whole.parameters);
  CHECK(mixed.offloaded == mixed.rounded);
  config.modules[0].offload = Offload::kState;
  CHECK(EstimateMemory(config, "vision", 0).offloaded == mixed.state());
}

TEST_CASE("what is computed again is not kept", "[modules]") {
  Config config = SmallModulesConfig();
  config.modules[0].recompute = Recompute{LayerPart::kAttention};
  // Less the norm's output, q, k, v and the sums.
  CHECK(KeptBy(config, "vision") == kFloat * (kVit - 2 * 5 * (8 + 3 * 8 + 4) + kAtSource));
  config.modules[0].recompute = Recompute{LayerPart::kLayer};
  CHECK(KeptBy(config, "vision") == kFloat * (2 * 5 * 8 + kAtSource));
}

TEST_CASE("a longer context keeps more in proportion", "[modules]") {
  Config config = SmallModulesConfig();
  const std::size_t of_edges = KeptBy(config, "language") - kFloat * kLlama;
  config.modules[2].As<LlamaConfig>().context *= 64;
  CHECK(KeptBy(config, "language") == kFloat * 64 * kLlama + of_edges);
}

TEST_CASE("a pack has as many images as fit", "[modules]") {
  Config config = SmallModulesConfig();
  config.data.packing = true;
  // Images of 4 rows in 16 tokens.
  CHECK(KeptBy(config, "vision") == 4 * kFloat * (kVit + kAtSource));
  CHECK(KeptBy(config, "language") == kFloat * (kLlama + 4 * kAtSink));
  config.modules[0].offload_activations = {.automatic = true};
  CHECK(EstimateUnit(config, "vision", 0).away == 4 * kFloat * kVit);
  config.modules[2].As<LlamaConfig>().context = 5;
  CHECK(KeptBy(config, "vision") == kFloat * (kVit + kAtSource));
  // Images of three squares: two of them take more than one of these leaves.
  config.modules[2].As<LlamaConfig>().context = 16;
  config.modules[1].As<VitConfig>().image_recipe = {.fit = ImageFit::kAnyres, .grids = {{1, 2}}};
  config.modules[1].offload_activations = {};
  CHECK(KeptBy(config, "audio") == 2 * 3 * kFloat * kVit);
}

TEST_CASE("a frozen encoder keeps what its projector needs, and nothing of its layers",
          "[modules]") {
  Config config = SmallModulesConfig();
  CHECK(KeptBy(config, "vision") == kFloat * (kVit + kAtSource));
  CHECK(KeptBy(config, "audio") == kFloat * kVit);
  CHECK(KeptBy(config, "language") == kFloat * (kLlama + kAtSink));
  config.modules[0].frozen = config.modules[1].frozen = true;
  CHECK(KeptBy(config, "vision") == kFloat * kAtSource);
  CHECK(KeptBy(config, "audio") == 0);  // its projector runs, and trains, where the rows go
  CHECK(KeptBy(config, "language") == kFloat * (kLlama + kAtSink));
}

TEST_CASE("only the last stage of a frozen encoder keeps anything", "[modules]") {
  Config config = SmallModulesConfig();
  config.modules[0].layout.pp = 2;
  CHECK(KeptBy(config, "vision", 0) == kFloat * kVitLayer);
  CHECK(KeptBy(config, "vision", 1) == kFloat * (kVitLayer + kAtSource));
  config.modules[0].frozen = true;
  CHECK(KeptBy(config, "vision", 0) == 0);
  CHECK(KeptBy(config, "vision", 1) == kFloat * kAtSource);
}

TEST_CASE("an inline encoder that is frozen costs its host no activations", "[modules]") {
  Config config = SmallModulesConfig();
  config.modules[0].inline_in = "language";
  CHECK(KeptBy(config, "language") == kFloat * (kVit + kAtSource + kLlama + kAtSink));
  config.modules[0].frozen = true;
  CHECK(KeptBy(config, "language") == kFloat * (kAtSource + kLlama + kAtSink));
  config.edges[0].through->frozen = true;
  CHECK(KeptBy(config, "language") == kFloat * (kLlama + kAtSink));
}

TEST_CASE("a frozen language model keeps activations where anything before it trains",
          "[modules]") {
  Config config = SmallModulesConfig();
  for (ModuleConfig& module : config.modules) module.frozen = true;
  config.edges[0].through->frozen = true;
  CHECK(KeptBy(config, "language") == kFloat * (kLlama + kAtSink));
  config.edges[1].through->frozen = true;
  CHECK(KeptBy(config, "language") == 0);
}

}  // namespace
}  // namespace troupe
