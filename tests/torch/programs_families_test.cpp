// The families of models that keys select: each against the reference, whole and in cut layouts.
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "kinds/siglip.hpp"
#include "modules/torch/reference.hpp"
#include "tests/torch/programs_fixture.hpp"

namespace troupe {
namespace {

struct Family {
  const char* name;
  std::function<void(LlamaConfig& language)> change;
};

const std::vector<Family>& LanguageFamilies() {
  static const std::vector<Family> kFamilies = {
      {"llama with linear rope scaling",
       [](LlamaConfig& llama) {
         llama.rope.scaling = RopeScaling::kLinear;
         llama.rope.factor = 3.0;
       }},
      // Of the 4 pairs of a head one stays, one is blended and two are divided.
      {"llama 3.1",
       [](LlamaConfig& llama) {
         llama.head_dim = 8;
         llama.rope = {.base = 10'000.0,
                       .scaling = RopeScaling::kLlama3,
                       .factor = 8.0,
                       .low_frequency = 1.0,
                       .high_frequency = 4.0,
                       .original_context = 100};
       }},
      {"llama with biases", [](LlamaConfig& llama) { llama.attention_bias = AttentionBias::kAll; }},
      {"qwen2",
       [](LlamaConfig& llama) {
         llama.attention_bias = AttentionBias::kQkv;
         llama.tied_head = true;
       }},
      {"qwen3",
       [](LlamaConfig& llama) {
         llama.head_norms = true;
         llama.head_dim = 6;
       }},
      {"qwen3 with one key head",
       [](LlamaConfig& llama) {
         llama.head_norms = true;
         llama.attention_bias = AttentionBias::kQkv;
         llama.head_dim = 2;
         llama.kv_heads = 1;
       }},
  };
  return kFamilies;
}

using Tensors = std::map<std::string, std::vector<double>>;

Tensors WholeTensors(const Reference& reference, TensorKind kind) {
  Tensors tensors;
  for (const TensorPiece& piece : reference.Tensors(kind)) {
    const auto* values = piece.value.as<double>();
    tensors[piece.name].assign(values, values + piece.value.num_elements());
  }
  return tensors;
}

/// Two steps: in the second no bias is zero and no norm's weight is one.
void RequireFollowsReference(Config config) {
  config.optimizer.clip_norm = 0.0;
  config.optimizer.schedule = RateSchedule::kConstant;
  Reference reference(config);
  const bool cut = GENERATE(false, true);
  if (cut) {
    SetLayout(config, "vision", {.tp = 2, .pp = 2, .dp = 2});
    SetLayout(config, "language", {.tp = 4, .pp = 2, .dp = 2});
  }
  Job job(config);
  for (int step = 0; step < 2; ++step) {
    const Inputs inputs = MakeInputs(config, {1, 0, 2, 1}, step);
    const LossSums expected = reference.Step(inputs, kScale, step);
    CHECK(job.Train({inputs}, kScale).loss == Approx(expected.loss).epsilon(1e-9));
    CHECK(std::sqrt(job.ReduceGradients()) == Approx(reference.gradient_norm()).epsilon(1e-8));
    CHECK(Difference(WholeTensors(reference, TensorKind::kGradient),
                     job.Tensors(TensorKind::kGradient)) < (step == 0 ? kExact : 1e-7));
    job.Update({.step = step + 1, .clip_coefficient = 1.0, .schedule = 1.0});
  }
}

TEST_CASE("every family of language models follows the reference in every layout", "[torch]") {
  for (const Family& family : LanguageFamilies()) {
    DYNAMIC_SECTION(family.name) {
      Config config = SmallConfig();
      family.change(ModuleOf(config, "language").As<LlamaConfig>());
      RequireFollowsReference(config);
    }
  }
}

TEST_CASE("what a family adds is computed again with the same bits", "[torch]") {
  Config config = SmallConfig();
  for (const Family& family : LanguageFamilies()) {
    ModuleOf(config, "language").model = SmallConfig().modules[1].model;
    family.change(ModuleOf(config, "language").As<LlamaConfig>());
    ModuleOf(config, "language").recompute = Recompute{};
    const Outcome kept = Run(config);
    ModuleOf(config, "language").recompute = Recompute{LayerPart::kLayer};
    CHECK(Run(config).gradients == kept.gradients);
  }
}

TEST_CASE("every activation and feature of vision encoders follows the reference", "[torch]") {
  const auto activation =
      GENERATE(MlpActivation::kQuickGelu, MlpActivation::kGelu, MlpActivation::kGeluTanh);
  const int layer = GENERATE(-1, -2);
  const bool norm = GENERATE(false, true);
  const auto change = [&](auto model) {
    model.activation = activation;
    model.feature_layer = layer;
    model.final_norm = norm;
    Config config = SmallConfig();
    ModuleOf(config, "vision").model = model;
    RequireFollowsReference(config);
  };
  const VitConfig vit = SmallConfig().modules[0].As<VitConfig>();
  SECTION("clip") { change(vit); }
  SECTION("siglip") {
    SiglipConfig siglip;
    static_cast<PatchEncoder&>(siglip) = vit;  // NOLINT(cppcoreguidelines-slicing)
    change(siglip);
  }
}

// The encoder has 4 x 4 patches, which leave as 4 rows where the projector joins them.
TEST_CASE("every kind of projector follows the reference, at both ends", "[torch]") {
  const auto kind = GENERATE(ProjectorKind::kLinear, ProjectorKind::kPixelShuffle);
  const auto end = GENERATE(ProjectorEnd::kFrom, ProjectorEnd::kTo);
  const bool clip = GENERATE(false, true);
  const bool tiles = GENERATE(false, true);
  Config config = SmallConfig();
  VitConfig vit = config.modules[0].As<VitConfig>();
  if (tiles) vit.image_recipe = {.fit = ImageFit::kAnyres, .grids = kUsualGrids};
  vit.image_size = kind == ProjectorKind::kPixelShuffle ? 16 : 8;
  SiglipConfig siglip;
  static_cast<PatchEncoder&>(siglip) = vit;  // NOLINT(cppcoreguidelines-slicing)
  config.modules[0].model = clip ? Model(vit) : Model(siglip);
  config.edges[0].through =
      ProjectorConfig{.kind = kind, .hidden = kind == ProjectorKind::kLinear ? 0 : 12, .on = end};
  JoinRows(config);
  RequireFollowsReference(config);
}

}  // namespace
}  // namespace troupe
