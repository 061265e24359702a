// Sequences, and vocabularies, of several blocks.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "modules/torch/reference.hpp"
#include "tests/torch/programs_fixture.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kTokens = 1100;
constexpr std::int64_t kVocab = 20'000;

using Gradients = std::map<std::string, std::vector<double>>;

/// An encoder whose 676 patches all see each other, and a language model.
Config LongConfig(std::int64_t kv_heads) {
  Config config = SmallConfig();
  auto& vit = ModuleOf(config, "vision").As<VitConfig>();
  vit.image_size = 104;
  vit.layers = 2;
  auto& llama = ModuleOf(config, "language").As<LlamaConfig>();
  llama.context = kTokens;
  llama.layers = 2;
  llama.vocab = kVocab;
  llama.kv_heads = kv_heads;
  return config;
}

/// Two samples: an image with text, and text. 600 labels.
Inputs LongInputs(const Config& config) {
  constexpr std::int64_t kSamples = 2;
  Inputs inputs;
  inputs.tokens = Buffer::Allocate({kSamples, kTokens}, DType::kInt64);
  inputs.labels = Buffer::Allocate({kSamples, kTokens}, DType::kInt64);
  inputs.content = Buffer::Allocate({kSamples, kTokens}, DType::kUInt8);
  for (std::int64_t i = 0; i < kSamples * kTokens; ++i) {
    inputs.content.as<std::uint8_t>()[i] = i % 3 == 0;
    inputs.tokens.as<std::int64_t>()[i] = i * 7919 % kVocab;
    inputs.labels.as<std::int64_t>()[i] =
        i % kTokens >= kTokens - 300 ? i * 104'729 % kVocab : kNoLabel;
  }
  const ModelConfig& vision = *config.modules[0].model;
  Shape shape = vision.field()->row_shape();
  shape.insert(shape.begin(), 1);
  Buffer image = Buffer::Allocate(shape, DType::kFloat32);
  for (std::int64_t i = 0; i < image.num_elements(); ++i) {
    image.as<float>()[i] = static_cast<float>(std::sin(0.37 * static_cast<double>(i)));
  }
  std::vector<std::int64_t> positions;
  for (std::int64_t row = 0; row < vision.RowsOf(1); ++row) positions.push_back(3 + row);
  inputs.fields["vision"] = {image, {1}};
  inputs.positions["vision"] = IntegerBuffer(positions);
  inputs.table = {.samples = {0, 1}, .rows = {std::ssize(positions), 0}};
  return inputs;
}

Gradients GradientsOf(const Reference& reference) {
  Gradients gradients;
  for (const TensorPiece& piece : reference.Tensors(TensorKind::kGradient)) {
    const auto* values = piece.value.as<double>();
    gradients[piece.name].assign(values, values + piece.value.num_elements());
  }
  return gradients;
}

Gradients GradientsOf(const Config& config, const Inputs& inputs) {
  Job job(config);
  job.Train({inputs}, kScale);
  job.ReduceGradients();
  return job.Tensors(TensorKind::kGradient);
}

TEST_CASE("attention in many blocks and logits in many chunks follow the reference", "[torch]") {
  // Query heads that share a key head are neighbouring rows of a block.
  const std::int64_t kv_heads = GENERATE(4, 2, 1);
  Config config = LongConfig(kv_heads);
  const Inputs inputs = LongInputs(config);
  Reference reference(config);
  const LossSums expected = reference.Step(inputs, kScale, 0);
  const auto gradients = GradientsOf(reference);
  for (const int tp : {1, 2}) {
    SetLayout(config, "vision", {.tp = tp});
    SetLayout(config, "language", {.tp = tp});
    for (const auto& [split, portable] : {std::pair(false, false), {true, false}, {false, true}}) {
      CAPTURE(kv_heads, tp, split, portable);
      Job job(config, split, portable);
      const LossSums loss = job.Train({inputs}, kScale);
      CHECK(loss.loss == Approx(expected.loss).epsilon(1e-12));
      CHECK(loss.tokens == 600);
      CHECK(loss.correct == expected.correct);
      job.ReduceGradients();
      CHECK(Difference(gradients, job.Tensors(TensorKind::kGradient)) < kExact);
    }
  }
}

TEST_CASE("many blocks are close in shorter types, and computed again to the same bits",
          "[torch]") {
  Config config = LongConfig(2);
  const Inputs inputs = LongInputs(config);
  const Gradients exact = GradientsOf(config, inputs);
  for (ModuleConfig& module : config.modules) module.recompute = Recompute{LayerPart::kAttention};
  CHECK(GradientsOf(config, inputs) == exact);
  config.run.precision = Precision::kFloat32;
  CHECK(Difference(exact, GradientsOf(config, inputs)) < 1e-5);
  config.run.precision = Precision::kBFloat16;
  CHECK(Difference(exact, GradientsOf(config, inputs)) < 0.15);
}

/// Operations of the library throw where the loss is not finite.
bool HasFiniteLoss(Job& job, const Inputs& inputs) {
  try {
    return std::isfinite(job.Evaluate(inputs).loss);
  } catch (const std::exception&) {
    return false;
  }
}

TEST_CASE("a score that is not finite makes the loss so", "[torch]") {
  // The query reaches the loss through scores alone.
  Config config = SmallConfig();
  config.run.precision = GENERATE(Precision::kFloat32, Precision::kFloat64);
  const bool portable = GENERATE(false, true);
  const double bad =
      GENERATE(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity());
  CAPTURE(portable, bad);
  Job job(config, /*split=*/false, portable);
  const Inputs inputs = MakeInputs(config, {0, 0}, 1);
  CHECK(HasFiniteLoss(job, inputs));
  for (const TensorPiece& piece : job.Program("language").Tensors(TensorKind::kParameter)) {
    if (piece.name != "language.layers.0.self_attn.q_proj.weight") continue;
    if (config.run.precision == Precision::kFloat32) {
      piece.value.as<float>()[3] = static_cast<float>(bad);
    } else {
      piece.value.as<double>()[3] = bad;
    }
  }
  CHECK_FALSE(HasFiniteLoss(job, inputs));
}

}  // namespace
}  // namespace troupe
