#include "plan/model_flops.hpp"

#include <catch2/catch.hpp>

#include "tests/plan/small_config.hpp"

namespace troupe {
namespace {

/// 3 samples of 10 tokens, 17 labels, 2 images for "vision" and 5 for "audio".
const StepShape kShape{
    .samples = 3, .tokens = 10, .labels = 17, .lengths = {{"vision", 2}, {"audio", 5}}};

PassFlops FlopsOf(const Config& config, const std::string& name) {
  for (const PartFlops& part : StepFlops(config, kShape)) {
    if (part.name == name) return part.flops;
  }
  FAIL("no part " + name);
  return {};
}

// The small configuration by hand: 2 of 3 layers are built, 4 patches and a class token.
constexpr double kPatches = 2.0 * (2 * 4) * (8 * 48);
constexpr double kVisionLinears = 2 * 2.0 * (2 * 5) * (4 * 8 * 8 + 2 * 8 * 12);
constexpr double kVisionAttention = 2 * 4.0 * (2 * 5 * 5) * 8;
// 8 heads of 2, 2 of them for keys and values; 55 of 100 pairs of positions see each other.
constexpr double kLanguageLinears = 4 * 2.0 * 30 * (16 * 16 * 2 + 2 * 4 * 16 + 3 * 24 * 16);
constexpr double kLanguageAttention = 4 * 4.0 * (3 * 55) * 16;
constexpr double kHead = 2.0 * 17 * 21 * 16;
constexpr double kFirst = 2.0 * (2 * 4) * 8 * 12;
constexpr double kSecond = 2.0 * (2 * 4) * 12 * 16;

}  // namespace

TEST_CASE("a step's operations are those of its products, and backward's twice that", "[modules]") {
  const Config config = SmallModulesConfig();
  const PassFlops vision = FlopsOf(config, "vision");
  CHECK(vision.forward == kPatches + kVisionLinears + kVisionAttention);
  // Pixels have no gradient.
  CHECK(vision.backward == kPatches + 2 * (kVisionLinears + kVisionAttention));
  const PassFlops language = FlopsOf(config, "language");
  CHECK(language.forward == kLanguageLinears + kLanguageAttention + kHead);
  CHECK(language.backward == 2 * language.forward);
  const PassFlops projector = FlopsOf(config, "vision_to_language");
  CHECK(projector.forward == kFirst + kSecond);
  CHECK(projector.backward == 2 * projector.forward);
}

TEST_CASE("a frozen module costs no gradients of weights, and none of inputs that are not needed",
          "[modules]") {
  Config config = SmallModulesConfig();
  config.modules[0].frozen = true;
  CHECK(FlopsOf(config, "vision").backward == 0);
  // Its first linear's input comes from what does not train.
  CHECK(FlopsOf(config, "vision_to_language").backward == kFirst + 2 * kSecond);
  config.modules[2].frozen = true;
  CHECK(FlopsOf(config, "language").backward == kLanguageLinears + kHead + 2 * kLanguageAttention);
  config.edges[0].through->frozen = true;
  CHECK(FlopsOf(config, "vision_to_language").backward == 0);
  CHECK(FlopsOf(config, "language").backward > 0);  // "audio" still trains
  config.modules[1].frozen = true;
  // Its projector, which runs in front of the language model, still trains.
  CHECK(FlopsOf(config, "language").backward == kLanguageLinears + kHead + 2 * kLanguageAttention);
  config.edges[1].through->frozen = true;
  CHECK(FlopsOf(config, "language").backward == 0);
}

TEST_CASE("a stage has the operations of all that runs on it", "[modules]") {
  Config config = SmallModulesConfig();
  config.modules[0].layout.pp = 2;
  const PassFlops first = StageFlops(config, "vision", 0, kShape);
  CHECK(first.forward == kPatches + (kVisionLinears + kVisionAttention) / 2);
  CHECK(first.weights == kPatches + kVisionLinears / 2);
  const PassFlops last = StageFlops(config, "vision", 1, kShape);
  CHECK(last.forward == (kVisionLinears + kVisionAttention) / 2 + kFirst + kSecond);
  CHECK(last.backward == 2 * last.forward);
  config.modules[0].frozen = true;
  CHECK(StageFlops(config, "vision", 0, kShape).backward == 0);
  CHECK(StageFlops(config, "vision", 1, kShape).forward == last.forward);
  CHECK(StageFlops(config, "vision", 1, kShape).backward == kFirst + 2 * kSecond);
  CHECK(StageFlops(config, "vision", 1, kShape).weights == kFirst + kSecond);
  config.modules[0].layout.pp = 1;
  const double language = StageFlops(config, "language", 0, kShape).forward;
  config.modules[0].inline_in = "language";
  CHECK(StageFlops(config, "language", 0, kShape).forward ==
        language + kPatches + kVisionLinears + kVisionAttention + kFirst + kSecond);
}

TEST_CASE("operations are the same in every layout, and recomputation adds none", "[modules]") {
  Config config = SmallModulesConfig();
  const double whole = TotalFlops(StepFlops(config, kShape));
  config.modules[2].layout = {.tp = 2, .pp = 2};
  config.modules[2].recompute = Recompute{LayerPart::kLayer};
  config.modules[0].inline_in = "language";
  CHECK(TotalFlops(StepFlops(config, kShape)) == whole);
}

}  // namespace troupe
