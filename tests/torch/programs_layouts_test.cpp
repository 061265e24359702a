#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "modules/torch/reference.hpp"
#include "tests/torch/programs_fixture.hpp"

namespace troupe {
namespace {

TEST_CASE("a model on one rank per module has the reference's gradients and loss", "[torch]") {
  Config config = SmallConfig();
  ModuleOf(config, "language").As<LlamaConfig>().tied_head = GENERATE(false, true);
  ModuleOf(config, "vision").As<VitConfig>().class_token = GENERATE(false, true);
  const Inputs inputs = MakeInputs(config, {1, 0, 1, 1}, 1);
  Reference reference(config);
  const LossSums expected = reference.Step(inputs, kScale, 0);
  const Outcome outcome = Run(config, {inputs});
  CHECK(outcome.loss.loss == Approx(expected.loss).epsilon(1e-12));
  CHECK(outcome.loss.tokens == expected.tokens);
  CHECK(outcome.loss.correct == expected.correct);
  CHECK(outcome.loss.content_correct == expected.content_correct);
  CHECK(std::sqrt(outcome.squares) == Approx(reference.gradient_norm()).epsilon(1e-12));
  std::map<std::string, std::vector<double>> gradients;
  for (const TensorPiece& piece : reference.Tensors(TensorKind::kGradient)) {
    const auto* values = piece.value.as<double>();
    gradients[piece.name].assign(values, values + piece.value.num_elements());
  }
  CHECK(Difference(gradients, outcome.gradients) < kExact);
}

TEST_CASE("every tensor-parallel size has the gradients of one rank", "[torch]") {
  // 21 tokens over 2 and 4 ranks are uneven parts; 2 key/value heads over 4 ranks are shared.
  Config config = SmallConfig();
  ModuleOf(config, "language").As<LlamaConfig>().tied_head = GENERATE(false, true);
  config.edges[0].through->on = GENERATE(ProjectorEnd::kFrom, ProjectorEnd::kTo);
  const Outcome whole = Run(config);
  const int tp = GENERATE(2, 4);
  SetLayout(config, "vision", {.tp = tp});
  SetLayout(config, "language", {.tp = tp});
  RequireSame(whole, Run(config));
}

TEST_CASE("one key/value head is shared by all four ranks", "[torch]") {
  Config config = SmallConfig();
  ModuleOf(config, "language").As<LlamaConfig>().kv_heads = 1;
  const Outcome whole = Run(config);
  SetLayout(config, "language", {.tp = 4});
  RequireSame(whole, Run(config));
}

TEST_CASE("every pipeline split has the gradients of one stage", "[torch]") {
  Config config = SmallConfig();
  ModuleOf(config, "language").As<LlamaConfig>().tied_head = GENERATE(false, true);
  const Outcome whole = Run(config);
  SetLayout(config, "vision", {.pp = GENERATE(1, 3)});
  SetLayout(config, "language", {.pp = GENERATE(2, 3)});
  RequireSame(whole, Run(config));
}

TEST_CASE("tensor, pipeline and data parallelism together have the gradients of one rank",
          "[torch]") {
  Config config = SmallConfig();
  ModuleOf(config, "language").As<LlamaConfig>().tied_head = true;
  const Outcome whole = Run(config);
  SetLayout(config, "vision", {.tp = 2, .pp = 2, .dp = 2});
  SetLayout(config, "language", {.tp = 4, .pp = 2, .dp = 2});
  RequireSame(whole, Run(config));
}

TEST_CASE("an inline encoder has the gradients of a separate one", "[torch]") {
  Config config = SmallConfig();
  const Outcome separate = Run(config);
  ModuleConfig& vision = ModuleOf(config, "vision");
  vision.inline_in = "language";
  vision.ranks.clear();
  SetLayout(config, "language", {.tp = GENERATE(1, 2), .pp = 2});
  RequireSame(separate, Run(config));
}

TEST_CASE("two encoders put their rows at their own placeholders", "[torch]") {
  Config config = SmallConfig();
  ModuleConfig detail = ModuleOf(config, "vision");
  detail.name = "detail";
  detail.As<VitConfig>().heads = 2;
  config.modules.insert(config.modules.begin(), detail);
  // Once in the order of the modules and once against it: links follow the edges.
  config.edges.insert(config.edges.begin() + GENERATE(0, 1),
                      {.from = "detail",
                       .to = "language",
                       .through = ProjectorConfig{.hidden = 6, .on = ProjectorEnd::kTo}});
  // Rows without a gradient take their places before or after those of the encoder that trains.
  if (GENERATE(false, true)) {
    for (const char* name : {"language", "vision"}) ModuleOf(config, name).frozen = true;
    for (EdgeConfig& edge : config.edges) edge.through->frozen = edge.from == "vision";
  }
  const Inputs inputs = MakeInputs(config, {1, 0, 1, 1}, 3);
  Reference reference(config);
  const LossSums expected = reference.Step(inputs, kScale, 0);
  SetLayout(config, "language", {.tp = 2});
  const Outcome outcome = Run(config, {inputs});
  CHECK(outcome.loss.loss == Approx(expected.loss).epsilon(1e-12));
  CHECK(std::sqrt(outcome.squares) == Approx(reference.gradient_norm()).epsilon(1e-10));
}

TEST_CASE("a batch without images still runs every collective and gives the encoder zeros",
          "[torch]") {
  Config config = SmallConfig();
  SetLayout(config, "vision", {.tp = 2, .pp = 2});
  SetLayout(config, "language", {.tp = 2});
  const Outcome outcome = Run(config, {MakeInputs(config, {0, 0}, 4)});
  CHECK(outcome.loss.tokens > 0);
  CHECK(outcome.squares > 0.0);
  for (const auto& [name, values] : outcome.gradients) {
    if (!name.starts_with("vision")) continue;
    INFO(name);
    CHECK(std::ranges::all_of(values, [](double value) { return value == 0.0; }));
  }
}

TEST_CASE("a batch without labels has no loss and zero gradients", "[torch]") {
  Config config = SmallConfig();
  SetLayout(config, "language", {.tp = 2, .pp = 2});
  const Outcome outcome = Run(config, {MakeInputs(config, {1, 1}, 4, /*labelled=*/false)});
  CHECK(outcome.loss.tokens == 0);
  CHECK(outcome.loss.loss == 0.0);
  CHECK(outcome.squares == 0.0);
}

TEST_CASE("a replica without samples takes part", "[torch]") {
  Config config = SmallConfig();
  const Inputs inputs = MakeInputs(config, {1, 2}, 8);
  const Outcome whole = Run(config, {inputs});
  SetLayout(config, "vision", {.tp = 2, .pp = 2, .dp = 2});
  SetLayout(config, "language", {.tp = 2, .pp = 2, .dp = 2});
  Job job(config);
  const LossSums loss =
      job.TrainRound({{Slice(config, inputs, 0, 2), Slice(config, inputs, 2, 2)}}, kScale);
  CHECK(loss.loss == Approx(whole.loss.loss));
  job.ReduceGradients();
  CHECK(Difference(whole.gradients, job.Tensors(TensorKind::kGradient)) < kExact);
}

TEST_CASE("among equally probable tokens the first is the prediction, on any rank", "[torch]") {
  Config config = SmallConfig();
  const int tp = GENERATE(1, 2, 4);
  SetLayout(config, "language", {.tp = tp});
  Job job(config);
  // Without a final norm all logits are 0 and all tokens equal.
  for (int rank = 0; rank < tp; ++rank) {
    for (const TensorPiece& piece :
         job.Program("language", 0, 0, rank).Tensors(TensorKind::kParameter)) {
      if (piece.name == "language.norm.weight") std::fill_n(piece.value.as<double>(), 16, 0.0);
    }
  }
  const Inputs inputs = MakeInputs(config, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 12);
  const auto* labels = inputs.labels.as<std::int64_t>();
  const auto zeros = std::count(labels, labels + inputs.labels.num_elements(), 0);
  REQUIRE(zeros > 0);
  const LossSums loss = job.Evaluate(inputs);
  CHECK(loss.correct == zeros);
  CHECK(loss.loss == Approx(static_cast<double>(loss.tokens) * std::log(21.0)));
}

}  // namespace
}  // namespace troupe
