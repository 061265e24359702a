#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "modules/torch/reference.hpp"
#include "tests/torch/programs_fixture.hpp"

namespace troupe {
namespace {

TEST_CASE("steps in any layout follow the reference", "[torch]") {
  Config config = SmallConfig();
  config.optimizer.clip_norm = 0.0;
  config.optimizer.schedule = RateSchedule::kConstant;
  config.optimizer.warmup_steps = 0;
  ModuleOf(config, "vision").optimizer.learning_rate = 3e-3;
  ModuleOf(config, "language").As<LlamaConfig>().tied_head = true;
  Reference reference(config);
  SetLayout(config, "vision", {.tp = 2});
  SetLayout(config, "language", {.tp = 4, .pp = 2});
  Job job(config);
  for (int step = 0; step < 3; ++step) {
    const Inputs inputs = MakeInputs(config, {1, 0, 2, 1}, step);
    const LossSums expected = reference.Step(inputs, kScale, step);
    CHECK(job.Train({inputs}, kScale).loss == Approx(expected.loss).epsilon(1e-9));
    job.ReduceGradients();
    job.Update({.step = step + 1, .clip_coefficient = 1.0, .schedule = 1.0});
  }
  for (const TensorKind kind :
       {TensorKind::kParameter, TensorKind::kFirstMoment, TensorKind::kSecondMoment}) {
    std::map<std::string, std::vector<double>> expected;
    for (const TensorPiece& piece : reference.Tensors(kind)) {
      const auto* values = piece.value.as<double>();
      expected[piece.name].assign(values, values + piece.value.num_elements());
    }
    CHECK(Difference(expected, job.Tensors(kind)) < 1e-7);
  }
}

TEST_CASE("decay by rule and a projector's own rates follow the reference in any layout",
          "[torch]") {
  Config config = SmallConfig();
  config.optimizer.clip_norm = 0.0;
  config.optimizer.schedule = RateSchedule::kConstant;
  config.optimizer.warmup_steps = 0;
  config.optimizer.weight_decay = 2.0;
  config.optimizer.no_decay = {Trait::kNorm, Trait::kEmbedding};
  ModuleOf(config, "vision").optimizer = {.learning_rate = 3e-3, .weight_decay = 5.0};
  config.edges.at(0).through->optimizer = {.learning_rate = 7e-3};
  Reference reference(config);
  SetLayout(config, "vision", {.tp = 2});
  SetLayout(config, "language", {.tp = 2, .pp = 2});
  Job job(config);
  for (int step = 0; step < 2; ++step) {
    const Inputs inputs = MakeInputs(config, {1, 0, 2, 1}, step);
    reference.Step(inputs, kScale, step);
    job.Train({inputs}, kScale);
    job.ReduceGradients();
    job.Update({.step = step + 1, .clip_coefficient = 1.0, .schedule = 1.0});
  }
  const auto stepped = job.Tensors(TensorKind::kParameter);
  std::map<std::string, std::vector<double>> expected;
  for (const TensorPiece& piece : reference.Tensors(TensorKind::kParameter)) {
    const auto* values = piece.value.as<double>();
    expected[piece.name].assign(values, values + piece.value.num_elements());
  }
  CHECK(Difference(expected, stepped) < 1e-7);
}

TEST_CASE("each rule of no_decay keeps its parameters from decaying, and only them", "[torch]") {
  const auto decayed = [](Traits no_decay) {
    Config config = SmallConfig();
    config.optimizer.weight_decay = 10.0;
    config.optimizer.no_decay = no_decay;
    Job job(config);  // gradients of 0: nothing but the decay moves a value
    const auto before = job.Tensors(TensorKind::kParameter);
    job.Update({.step = 1, .clip_coefficient = 0.0, .schedule = 1.0});
    const auto after = job.Tensors(TensorKind::kParameter);
    const auto moved = [&](const std::string& name) { return before.at(name) != after.at(name); };
    return std::vector<bool>{moved("language.norm.weight"), moved("language.embed_tokens.weight"),
                             moved("vision.embeddings.class_embedding"),
                             moved("language.layers.0.mlp.up_proj.weight")};
  };
  CHECK(decayed({}) == std::vector<bool>{true, true, true, true});
  CHECK(decayed({Trait::kNorm}) == std::vector<bool>{false, true, true, true});
  CHECK(decayed({Trait::kEmbedding}) == std::vector<bool>{true, false, true, true});
  CHECK(decayed({Trait::kClassEmbedding}) == std::vector<bool>{true, true, false, true});
  CHECK(decayed({Trait::kBias}) == std::vector<bool>{true, true, true, true});
}

TEST_CASE("the squared norms of parts are those of their gradients", "[torch]") {
  Config config = SmallConfig();
  SetLayout(config, "vision", {.tp = 2});
  SetLayout(config, "language", {.tp = 2, .pp = 2});
  Job job(config);
  job.Train({MakeInputs(config, {1, 1}, 6)}, kScale);
  const double whole = job.ReduceGradients();
  std::map<std::string, double> expected;
  double sum = 0.0;
  for (const auto& [name, values] : job.Tensors(TensorKind::kGradient)) {
    double& part = expected[name.substr(0, name.find('.'))];
    for (const double value : values) part += value * value;
  }
  REQUIRE(job.squares_by_part().size() == expected.size());
  for (const auto& [part, squares] : job.squares_by_part()) {
    INFO(part);
    CHECK(squares == Approx(expected.at(part)).epsilon(1e-10));
    sum += squares;
  }
  CHECK(sum == Approx(whole).epsilon(1e-12));
}

TEST_CASE("the clip coefficient and the schedule act as stated", "[torch]") {
  Config config = SmallConfig();
  const auto stepped = [&config](const UpdateStep& step) {
    Job job(config);
    job.Train({MakeInputs(config, {1, 1}, 6)}, kScale);
    job.ReduceGradients();
    job.Update(step);
    return job.Tensors(TensorKind::kFirstMoment).at("language.norm.weight")[0];
  };
  const double whole = stepped({.step = 1, .clip_coefficient = 1.0, .schedule = 1.0});
  CHECK(whole != 0.0);
  CHECK(stepped({.step = 1, .clip_coefficient = 0.25, .schedule = 1.0}) == Approx(0.25 * whole));
}

TEST_CASE("the learning rate runs from its least to its greatest value", "[torch]") {
  const Config config = SmallConfig();
  for (const double schedule : {0.0, 0.5, 1.0}) {
    Job job(config);
    job.Train({MakeInputs(config, {1, 1}, 6)}, kScale);
    job.ReduceGradients();
    job.Update({.step = 1, .clip_coefficient = 1.0, .schedule = schedule});
    // The first step of Adam is as long as the learning rate; norm weights start at 1, undecayed.
    const double moved =
        std::abs(job.Tensors(TensorKind::kParameter).at("language.norm.weight")[3] - 1.0);
    CHECK(moved == Approx(1e-3 + schedule * 9e-3).epsilon(1e-3));
  }
}

TEST_CASE("an update clears the gradients", "[torch]") {
  const Config config = SmallConfig();
  Job job(config);
  job.Train({MakeInputs(config, {1, 1}, 6)}, kScale);
  CHECK(job.ReduceGradients() > 0.0);
  job.Update({.step = 1});
  CHECK(job.ReduceGradients() == 0.0);
}

TEST_CASE("an evaluation keeps nothing and equals the training loss", "[torch]") {
  Config config = SmallConfig();
  SetLayout(config, "language", {.tp = 2, .pp = 2});
  Job job(config);
  const Inputs inputs = MakeInputs(config, {1, 0, 2}, 7);
  const LossSums evaluated = job.Evaluate(inputs);
  CHECK(job.ReduceGradients() == 0.0);  // throws when a pass is in flight
  CHECK(job.Train({inputs}, kScale).loss == evaluated.loss);
}

}  // namespace
}  // namespace troupe
