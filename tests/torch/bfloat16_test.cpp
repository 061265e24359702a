// bfloat16 activations over float32 parameters, gradients and moments.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "modules/torch/planted.hpp"
#include "tests/torch/job.hpp"

namespace troupe {
namespace {

using Tensors = std::map<std::string, std::vector<double>>;

constexpr double kScale = 1.0 / 17.0;
/// A number of bfloat16 has 8 bits: one rounding is wrong by 2^-9 of its size at most. A gradient
/// has some tens of them behind it, and that of a query weight is the small difference of larger
/// numbers. What is wrong by a factor of 2 is 0.5 away.
constexpr double kNear = 0.25;

struct Outcome {
  LossSums loss;
  double squares = 0.0;
  Tensors gradients;
};

Outcome Run(const Config& config, bool split = false) {
  Job job(config, split);
  Outcome outcome;
  outcome.loss =
      job.Train({MakeInputs(config, {1, 0, 2, 1}, 1), MakeInputs(config, {0, 0, 0, 0}, 3)}, kScale);
  outcome.squares = job.ReduceGradients();
  outcome.gradients = job.Tensors(TensorKind::kGradient);
  return outcome;
}

Config ShortConfig() {
  Config config = SmallConfig();
  config.run.precision = Precision::kBFloat16;
  return config;
}

void RequireNear(const Outcome& exact, const Outcome& rounded) {
  CHECK(rounded.loss.loss == Approx(exact.loss.loss).epsilon(2e-3));
  CHECK(rounded.loss.tokens == exact.loss.tokens);
  CHECK(rounded.loss.content_tokens == exact.loss.content_tokens);
  CHECK(std::sqrt(rounded.squares) == Approx(std::sqrt(exact.squares)).epsilon(0.02));
  CHECK(Difference(exact.gradients, rounded.gradients) < kNear);
  // Rounded it must be: float32 would be a thousand times nearer.
  CHECK(Difference(exact.gradients, rounded.gradients) > 1e-3);
}

TEST_CASE("bfloat16 gradients are near those of float64 in every layout", "[torch]") {
  Config config = SmallConfig();
  ModuleOf(config, "language").As<LlamaConfig>().tied_head = GENERATE(false, true);
  const Outcome exact = Run(config);
  config.run.precision = Precision::kBFloat16;
  RequireNear(exact, Run(config));
  SetLayout(config, "vision", {.tp = 2, .pp = 2, .dp = 2});
  SetLayout(config, "language", {.tp = GENERATE(2, 4), .pp = 2, .dp = 2});
  RequireNear(exact, Run(config));
}

TEST_CASE("bfloat16 computes again, and puts weights off, to the same bits", "[torch]") {
  Config config = ShortConfig();
  SetLayout(config, "language", {.tp = 2});
  const Outcome kept = Run(config);
  CHECK(Run(config, /*split=*/true).gradients == kept.gradients);
  for (const Recompute recompute :
       {Recompute{LayerPart::kAttention}, Recompute{LayerPart::kLayer}}) {
    ModuleOf(config, "vision").recompute = recompute;
    ModuleOf(config, "language").recompute = recompute;
    const Outcome again = Run(config);
    CHECK(again.loss.loss == kept.loss.loss);
    CHECK(again.gradients == kept.gradients);
  }
}

TEST_CASE("activations travel in bfloat16, all that is kept is float32", "[torch]") {
  const Config config = ShortConfig();
  Job job(config);
  const auto data = std::make_shared<const Inputs>(MakeInputs(config, {2}, 9));
  const ForwardPass pass{.train = false, .inputs = {}, .data = data};
  CHECK(job.Program("vision").Forward(pass).outputs.at(0).dtype() == DType::kBFloat16);
  for (const TensorKind kind : {TensorKind::kParameter, TensorKind::kGradient,
                                TensorKind::kFirstMoment, TensorKind::kSecondMoment}) {
    for (const TensorPiece& piece : job.Program("vision").Tensors(kind)) {
      CHECK(piece.value.dtype() == DType::kFloat32);
    }
  }
}

/// Sets every element of one parameter by the program's own means.
void Fill(StageProgram& program, const std::string& name, float value) {
  auto pieces = program.Tensors(TensorKind::kParameter);
  for (TensorPiece& piece : pieces) {
    if (piece.name != name) continue;
    const Buffer filled = Buffer::Allocate(piece.value.shape(), piece.value.dtype());
    if (filled.dtype() == DType::kFloat32) {
      std::fill_n(filled.as<float>(), filled.num_elements(), value);
    } else {  // bfloat16 is the upper half of a float
      std::fill_n(reinterpret_cast<std::uint16_t*>(filled.data()), filled.num_elements(),
                  static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U));
    }
    piece.value = filled;
  }
  program.SetTensors(TensorKind::kParameter, pieces);
}

TEST_CASE("frozen parameters that are set are those that are computed with", "[torch]") {
  Config config = ShortConfig();
  const Inputs inputs = MakeInputs(config, {2}, 9);
  Job job(config);
  ModuleOf(config, "language").frozen = true;
  Job frozen(config);
  CHECK(job.Evaluate(inputs).loss == frozen.Evaluate(inputs).loss);
  for (const char* name : {"language.norm.weight", "language.layers.0.input_layernorm.weight",
                           "language.layers.1.mlp.up_proj.weight"}) {
    const double before = job.Evaluate(inputs).loss;
    for (Job* each : {&job, &frozen}) Fill(each->Program("language"), name, 2.0F);
    CHECK(job.Evaluate(inputs).loss != before);
    CHECK(job.Evaluate(inputs).loss == frozen.Evaluate(inputs).loss);
  }
}

TEST_CASE("steps that are too small for bfloat16 add up", "[torch]") {
  Config config = ShortConfig();
  config.optimizer.learning_rate = config.optimizer.min_learning_rate = 1e-4;
  config.optimizer.weight_decay = 0.0;
  Job job(config);
  const std::string name = "language.layers.1.mlp.up_proj.weight";
  Fill(job.Program("language"), name, 1.0F);
  const Inputs inputs = MakeInputs(config, {1, 1}, 6);
  const double before = job.Evaluate(inputs).loss;
  constexpr int kSteps = 20;
  for (int step = 1; step <= kSteps; ++step) {
    job.Train({inputs}, kScale);
    job.ReduceGradients();
    job.Update({.step = step});
  }
  // Next to 1 the numbers of bfloat16 are 2^-8 apart below and 2^-7 above: no step of 1e-4 leaves
  // it, and nor do all of them where only the rounded copy is remembered.
  const std::vector<double> values = job.Tensors(TensorKind::kParameter).at(name);
  const auto moved = [](double value) { return std::abs(value - 1.0) > 0.8e-4 * kSteps; };
  CHECK(std::ranges::count_if(values, moved) > std::ssize(values) / 2);
  CHECK(job.Evaluate(inputs).loss < before);
  // What is multiplied by has come along: it is what a program has that is given these values.
  Job twin(config);
  for (const char* module : {"vision", "language"}) {
    twin.Program(module).SetTensors(TensorKind::kParameter,
                                    job.Program(module).Tensors(TensorKind::kParameter));
  }
  CHECK(twin.Evaluate(inputs).loss == job.Evaluate(inputs).loss);
}

TEST_CASE("gradients of many microbatches add up in float32", "[torch]") {
  const Config config = ShortConfig();
  const Inputs inputs = MakeInputs(config, {1, 1}, 6);
  const auto gradients = [&](int times) {
    Job job(config);
    job.Train(std::vector<Inputs>(static_cast<std::size_t>(times), inputs), kScale);
    return job.Tensors(TensorKind::kGradient);
  };
  constexpr int kTimes = 48;
  Tensors one = gradients(1);
  for (auto& [name, values] : one) {
    for (double& value : values) value *= kTimes;
  }
  CHECK(Difference(one, gradients(kTimes)) < 1e-5);
}

/// Norm of the gradients of the same samples in microbatches of `size`.
double NormOf(const Config& config, const Inputs& whole, std::size_t size) {
  std::vector<Inputs> microbatches;
  for (std::size_t begin = 0; begin < whole.table.rows.size(); begin += size) {
    microbatches.push_back(Slice(config, whole, begin, begin + size));
  }
  Job job(config);
  job.Train(microbatches, kScale);
  return std::sqrt(job.ReduceGradients());
}

TEST_CASE("the gradient norm does not depend on the size of microbatches", "[torch]") {
  const Config config = ShortConfig();
  constexpr std::size_t kSamples = 128;
  std::vector<int> images(kSamples);
  for (std::size_t i = 0; i < kSamples; ++i) images[i] = static_cast<int>(i % 3);
  const Inputs whole = MakeInputs(config, images, 8);
  const auto check = [&] {
    const double norm = NormOf(config, whole, 1);
    for (const std::size_t size : {8, 32, 128}) {
      INFO("microbatches of " << size);
      CHECK(NormOf(config, whole, size) == Approx(norm).epsilon(1e-3));
    }
  };
  check();
  // And on a CPU where the library multiplies itself.
  const WithoutOneDnn alone;
  check();
}

TEST_CASE("what is multiplied by follows what is set", "[torch]") {
  const Config config = ShortConfig();
  Config other = config;
  other.run.seed += 1;
  Job job(config);
  Job twin(other);
  const Inputs inputs = MakeInputs(config, {1, 0, 2}, 7);
  CHECK(job.Evaluate(inputs).loss != twin.Evaluate(inputs).loss);
  for (const char* module : {"vision", "language"}) {
    twin.Program(module).SetTensors(TensorKind::kParameter,
                                    job.Program(module).Tensors(TensorKind::kParameter));
  }
  CHECK(job.Evaluate(inputs).loss == twin.Evaluate(inputs).loss);
}

}  // namespace
}  // namespace troupe
