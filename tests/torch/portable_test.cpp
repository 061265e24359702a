// Stages computed by operations of the library alone, as on a device, here on the host.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/torch/job.hpp"

namespace troupe {
namespace {

constexpr double kExact = 1e-10;
constexpr double kScale = 1.0 / 17.0;

struct Outcome {
  LossSums loss;
  double squares = 0.0;
  std::map<std::string, std::vector<double>> gradients;
  std::map<std::string, std::vector<double>> parameters;  ///< after one update
};

Outcome Run(const Config& config, bool portable, bool split = false) {
  Job job(config, split, portable);
  Outcome outcome;
  outcome.loss =
      job.Train({MakeInputs(config, {1, 0, 2, 1}, 1), MakeInputs(config, {0, 0, 0, 0}, 3),
                 MakeInputs(config, {0, 1, 1, 2}, 2)},
                kScale);
  outcome.squares = job.ReduceGradients();
  outcome.gradients = job.Tensors(TensorKind::kGradient);
  job.Update({.step = 1, .clip_coefficient = 0.5, .schedule = 0.7});
  outcome.parameters = job.Tensors(TensorKind::kParameter);
  return outcome;
}

void RequireSame(const Outcome& loops, const Outcome& portable) {
  CHECK(portable.loss.loss == Approx(loops.loss.loss).epsilon(1e-12));
  CHECK(portable.loss.tokens == loops.loss.tokens);
  CHECK(portable.loss.correct == loops.loss.correct);
  CHECK(portable.loss.content_tokens == loops.loss.content_tokens);
  CHECK(portable.loss.content_correct == loops.loss.content_correct);
  CHECK(portable.squares == Approx(loops.squares).epsilon(1e-10));
  CHECK(Difference(loops.gradients, portable.gradients) < kExact);
  CHECK(Difference(loops.parameters, portable.parameters) < 1e-7);
  // Two codes of one thing: they would agree in every bit only if one of them did not run.
  CHECK(portable.gradients != loops.gradients);
}

TEST_CASE("operations of the library give what our own loops give", "[torch]") {
  Config config = SmallConfig();
  ModuleOf(config, "language").As<LlamaConfig>().tied_head = GENERATE(false, true);
  ModuleOf(config, "vision").As<VitConfig>().class_token = GENERATE(false, true);
  RequireSame(Run(config, false), Run(config, true));
}

TEST_CASE("operations of the library give what our own loops give when layers are cut", "[torch]") {
  Config config = SmallConfig();
  config.edges[0].through->on = GENERATE(ProjectorEnd::kFrom, ProjectorEnd::kTo);
  SetLayout(config, "vision", {.tp = 2, .dp = 2});
  SetLayout(config, "language", {.tp = GENERATE(2, 4), .pp = 2, .dp = 2});
  RequireSame(Run(config, false), Run(config, true));
}

TEST_CASE("operations of the library compute again what was not kept, to the same bits",
          "[torch]") {
  Config config = SmallConfig();
  SetLayout(config, "language", {.tp = 2});
  const Outcome kept = Run(config, true);
  for (const Recompute recompute :
       {Recompute{LayerPart::kAttention}, Recompute{LayerPart::kLayer}}) {
    ModuleOf(config, "vision").recompute = recompute;
    ModuleOf(config, "language").recompute = recompute;
    const Outcome again = Run(config, true);
    CHECK(again.loss.loss == kept.loss.loss);
    CHECK(again.squares == kept.squares);
    CHECK(again.gradients == kept.gradients);
  }
}

TEST_CASE("operations of the library put weights off to the same bits", "[torch]") {
  Config config = SmallConfig();
  config.run.precision = GENERATE(Precision::kFloat32, Precision::kFloat64);
  SetLayout(config, "language", {.tp = 2, .pp = 2});
  const Outcome whole = Run(config, true);
  const Outcome split = Run(config, true, /*split=*/true);
  CHECK(split.gradients == whole.gradients);
  CHECK(split.squares == whole.squares);
}

TEST_CASE("operations of the library leave frozen layers alone", "[torch]") {
  Config config = SmallConfig();
  ModuleOf(config, "vision").frozen = GENERATE(false, true);
  ModuleOf(config, "language").frozen = !ModuleOf(config, "vision").frozen;
  RequireSame(Run(config, false), Run(config, true));
}

/// Sets all of one parameter.
void Fill(StageProgram& program, const std::string& name, double value) {
  for (const TensorPiece& piece : program.Tensors(TensorKind::kParameter)) {
    if (piece.name == name) {
      std::fill_n(piece.value.as<double>(), piece.value.num_elements(), value);
    }
  }
}

TEST_CASE("among equally probable tokens the first is the prediction on a device, too", "[torch]") {
  Config config = SmallConfig();
  const int tp = GENERATE(1, 2, 4);
  SetLayout(config, "language", {.tp = tp});
  Job job(config, false, /*portable=*/true);
  for (int rank = 0; rank < tp; ++rank) {
    Fill(job.Program("language", 0, 0, rank), "language.norm.weight", 0.0);
  }
  const Inputs inputs = MakeInputs(config, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 12);
  const auto* labels = inputs.labels.as<std::int64_t>();
  const auto zeros = std::count(labels, labels + inputs.labels.num_elements(), 0);
  REQUIRE(zeros > 0);
  const LossSums loss = job.Evaluate(inputs);
  CHECK(loss.correct == zeros);
  CHECK(loss.loss == Approx(static_cast<double>(loss.tokens) * std::log(21.0)));
}

/// What `finish` of the result throws.
template <class Result>
std::string ErrorOf(Result result) {
  REQUIRE(result.finish);
  try {
    result.finish(result);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("what a pass computes is looked at when the device has run it", "[torch]") {
  const Config config = SmallConfig();
  Job job(config, false, /*portable=*/true);
  StageProgram& vision = job.Program("vision");
  StageProgram& language = job.Program("language");
  const auto data = std::make_shared<const Inputs>(MakeInputs(config, {1, 0}, 10));
  const ForwardPass seen{.unit = 1, .inputs = {}, .data = data};
  const Buffer rows = vision.Forward(seen).outputs.at(0);
  const ForwardPass read{.unit = 1, .inputs = {rows}, .data = data};

  SECTION("nothing is wrong") {
    ForwardResult result = language.Forward(read);
    CHECK(result.loss.loss == 0.0);  // known late
    CHECK(result.loss.tokens > 0);   // known at once
    CHECK(ErrorOf(result) == "no error");
    result.finish(result);
    CHECK(result.loss.loss > 0.0);
    BackwardResult back = language.Backward({.unit = 1, .gradients = {}});
    CHECK(ErrorOf(back) == "no error");
    // Nothing leaves the first stage backwards: there is nothing to say.
    CHECK_FALSE(vision.Backward({.unit = 1, .gradients = back.gradients}).finish);
  }
  SECTION("an output that is no number") {
    Fill(vision, "vision_to_language.linear_2.bias", std::numeric_limits<double>::quiet_NaN());
    CHECK(ErrorOf(vision.Forward({.unit = 2, .inputs = {}, .data = data})) ==
          "output 0 is not finite: nan");
  }
  SECTION("an output without bounds") {
    Fill(vision, "vision_to_language.linear_2.bias", -std::numeric_limits<double>::infinity());
    CHECK(ErrorOf(vision.Forward({.unit = 2, .inputs = {}, .data = data})) ==
          "output 0 is not finite: inf");
  }
  SECTION("a loss that is no number") {
    Fill(language, "language.norm.weight", std::numeric_limits<double>::quiet_NaN());
    CHECK(ErrorOf(language.Forward(read)) == "the loss is nan");
  }
  SECTION("a gradient that is no number") {
    language.Forward(read);
    Fill(language, "language.layers.0.mlp.down_proj.weight",
         std::numeric_limits<double>::infinity());
    CHECK(ErrorOf(language.Backward({.unit = 1, .gradients = {}})) ==
          "gradient of input 0 is not finite: nan");
  }
}

}  // namespace
}  // namespace troupe
