#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "kinds/synthetic.hpp"
#include "modules/torch/reference.hpp"
#include "tests/torch/job.hpp"

namespace troupe {
namespace {

constexpr double kExact = 1e-10;  ///< float64; cuts of inner dimensions round differently
constexpr double kScale = 1.0 / 17.0;

/// Gradients, squared norm and loss of two microbatches.
struct Outcome {
  LossSums loss;
  double squares = 0.0;
  std::map<std::string, std::vector<double>> gradients;
};

std::vector<Inputs> TwoMicrobatches(const Config& config) {
  return {MakeInputs(config, {1, 0, 2, 1}, 1), MakeInputs(config, {0, 1, 1, 2}, 2)};
}

Outcome Run(const Config& config, const std::vector<Inputs>& microbatches) {
  Job job(config);
  Outcome outcome;
  outcome.loss = job.Train(microbatches, kScale);
  outcome.squares = job.ReduceGradients();
  outcome.gradients = job.Tensors(TensorKind::kGradient);
  return outcome;
}

Outcome Run(const Config& config) { return Run(config, TwoMicrobatches(config)); }

double SquaredNorm(const Outcome& outcome) {
  double sum = 0.0;
  for (const auto& [name, values] : outcome.gradients) {
    for (const double value : values) sum += value * value;
  }
  return sum;
}

void RequireSame(const Outcome& one, const Outcome& other) {
  CHECK(other.loss.loss == Approx(one.loss.loss).epsilon(1e-12));
  CHECK(other.loss.tokens == one.loss.tokens);
  CHECK(other.loss.correct == one.loss.correct);
  CHECK(other.loss.content_tokens == one.loss.content_tokens);
  CHECK(other.loss.content_correct == one.loss.content_correct);
  CHECK(Difference(one.gradients, other.gradients) < kExact);
  CHECK(one.squares == Approx(SquaredNorm(one)).epsilon(1e-12));
  CHECK(other.squares == Approx(one.squares).epsilon(1e-10));
}

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

TEST_CASE("what is computed again has the same bits as what was kept", "[torch]") {
  Config config = SmallConfig();
  SetLayout(config, "vision", {.tp = 2});
  SetLayout(config, "language", {.tp = 2});
  auto microbatches = TwoMicrobatches(config);
  microbatches.push_back(MakeInputs(config, {0, 0, 0, 0}, 3));  // no image at all
  const Outcome kept = Run(config, microbatches);
  for (const Recompute recompute : {Recompute::kAttention, Recompute::kFull}) {
    ModuleOf(config, "vision").recompute = recompute;
    ModuleOf(config, "language").recompute = recompute;
    const Outcome again = Run(config, microbatches);
    CHECK(again.loss.loss == kept.loss.loss);
    CHECK(again.squares == kept.squares);
    CHECK(again.gradients == kept.gradients);
  }
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

TEST_CASE("what is frozen has no gradients, and what trains keeps its own", "[torch]") {
  Config config = SmallConfig();
  const Outcome all = Run(config);
  const bool vision = GENERATE(false, true);
  const bool projector = GENERATE(false, true);
  const bool language = GENERATE(false, true);
  if (vision && projector && language) return;
  ModuleOf(config, "vision").frozen = vision;
  ModuleOf(config, "language").frozen = language;
  config.edges[0].through->frozen = projector;
  config.edges[0].through->on = GENERATE(ProjectorEnd::kFrom, ProjectorEnd::kTo);
  SetLayout(config, "vision", {.tp = 2, .pp = 2});
  SetLayout(config, "language", {.tp = 2, .pp = 2});
  Outcome expected = all;
  std::erase_if(expected.gradients, [&](const auto& entry) {
    if (entry.first.starts_with("vision_to_language")) return projector;
    return entry.first.starts_with("vision.") ? vision : language;
  });
  const Outcome outcome = Run(config);
  CHECK(outcome.loss.loss == Approx(all.loss.loss).epsilon(1e-12));
  CHECK(Difference(expected.gradients, outcome.gradients) < kExact);
  CHECK(outcome.squares == Approx(SquaredNorm(expected)).epsilon(1e-10));
}

TEST_CASE("a boundary into frozen territory carries no gradient", "[torch]") {
  Config config = SmallConfig();
  ModuleOf(config, "vision").frozen = true;
  config.edges[0].through->on = ProjectorEnd::kTo;
  Job job(config);
  job.Train({MakeInputs(config, {1, 1}, 5)}, kScale);
  CHECK(job.num_undefined_input_gradients() == 1);
}

TEST_CASE("steps in any layout follow the reference", "[torch]") {
  Config config = SmallConfig();
  config.optimizer.clip_norm = 0.0;
  config.optimizer.schedule = "constant";
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

TEST_CASE("outputs share the memory of the tensors that were computed", "[torch]") {
  const Config config = SmallConfig();
  Job job(config);
  const auto data = std::make_shared<const Inputs>(MakeInputs(config, {2}, 9));
  Buffer kept;
  {
    ForwardResult result =
        job.Program("vision").Forward({.train = false, .inputs = {}, .data = data});
    kept = result.outputs.at(0);
  }
  CHECK(kept.shape() == Shape{8, 16});
  CHECK(kept.use_count() == 1);
}

/// Runs `work` and returns the text of what it throws.
template <class Work>
std::string ErrorOf(Work work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("wrong input is refused in one line that says what was expected and what came",
          "[torch]") {
  const Config config = SmallConfig();
  Job job(config);
  StageProgram& language = job.Program("language");
  Inputs inputs = MakeInputs(config, {1, 0}, 10);
  Buffer rows = Buffer::Zeros({4, 16}, DType::kFloat64);
  const auto forward = [&] {
    language.Forward(
        {.train = false, .inputs = {rows}, .data = std::make_shared<const Inputs>(inputs)});
  };
  CHECK(ErrorOf(forward) == "no error");

  SECTION("fewer rows than positions") {
    rows = rows.Rows(0, 3);
    CHECK(ErrorOf(forward) ==
          "language: expected 4 rows of 16 from vision, one for each position, got 3 rows of 16");
  }
  SECTION("another hidden size") {
    rows = Buffer::Zeros({4, 8}, DType::kFloat64);
    CHECK(ErrorOf(forward) ==
          "language: expected 4 rows of 16 from vision, one for each position, got 4 rows of 8");
  }
  SECTION("another precision") {
    rows = Buffer::Zeros({4, 16}, DType::kFloat32);
    CHECK(ErrorOf(forward) ==
          "language.s0 dp0 rank 1: input 0: expected 2 dimensions of float64, got [4, 16] of "
          "float32");
  }
  SECTION("no rows at all") {
    rows = Buffer();
    CHECK(ErrorOf(forward) ==
          "language.s0 dp0 rank 1: input 0: expected 2 dimensions of float64, got no tensor");
  }
  SECTION("a token outside the vocabulary") {
    inputs.tokens.as<std::int64_t>()[3] = 21;
    CHECK(ErrorOf(forward) == "language: expected tokens in [0, 21), got 21");
  }
  SECTION("a label outside the vocabulary") {
    inputs.labels.as<std::int64_t>()[3] = -1;
    CHECK(ErrorOf(forward) == "language: expected labels in [0, 21), got -1");
  }
  SECTION("a position outside the samples") {
    inputs.positions["vision"].as<std::int64_t>()[2] = 26;
    CHECK(ErrorOf(forward) == "language: expected positions of vision in [0, 26), got 26");
  }
  SECTION("labels of another shape") {
    inputs.labels = inputs.labels.Rows(0, 1);
    CHECK(ErrorOf(forward) == "language: expected labels [2, 13], got [1, 13]");
  }
  SECTION("more tokens than the context") {
    inputs.tokens = Buffer::Zeros({1, 17}, DType::kInt64);
    inputs.labels = Buffer::Zeros({1, 17}, DType::kInt64);
    CHECK(ErrorOf(forward) ==
          "language: expected at most 16 tokens of 16 values per sample, got 17 of 16");
  }
  SECTION("images of another size") {
    inputs.fields["vision"].values = Buffer::Zeros({1, 3, 8, 4}, DType::kFloat32);
    CHECK(ErrorOf([&] {
            job.Program("vision").Forward(
                {.train = false, .inputs = {}, .data = std::make_shared<const Inputs>(inputs)});
          }) == "vision: expected image [1, 3, 8, 8], got [1, 3, 8, 4]");
  }
  SECTION("no data") {
    CHECK(ErrorOf([&] {
            job.Program("vision").Forward({.train = false, .inputs = {}, .data = nullptr});
          }) == "vision: expected input data, got none");
  }
}

TEST_CASE("modules and edges that no program computes are refused", "[torch]") {
  Config config = SmallConfig();
  const auto make = [&config] { const Job job(config); };
  SECTION("a module that computes nothing") {
    config.modules[0].model = SyntheticConfig();
    CHECK(ErrorOf(make) == "vision: expected a module that computes, got a synthetic one");
  }
  SECTION("an edge into a module that takes no rows") {
    std::swap(config.edges[0].from, config.edges[0].to);
    CHECK(ErrorOf(make) ==
          "vision.s0 dp0 rank 0: edge language -> vision: vision reads images; expected a module "
          "that takes rows");
  }
}

TEST_CASE("passes out of order are refused", "[torch]") {
  const Config config = SmallConfig();
  Job job(config);
  StageProgram& vision = job.Program("vision");
  const auto data = std::make_shared<const Inputs>(MakeInputs(config, {1}, 10));
  const ForwardPass pass{.unit = 5, .inputs = {}, .data = data};
  CHECK(ErrorOf([&] { vision.Backward({.unit = 5, .gradients = {}}); }) ==
        "vision.s0 dp0 rank 0: backward of unit 5 without its forward");
  vision.Forward(pass);
  CHECK(ErrorOf([&] { vision.Forward(pass); }) ==
        "vision.s0 dp0 rank 0: unit 5 is in flight already");
  CHECK(ErrorOf([&] { vision.Update({.step = 1}); }) ==
        "vision.s0 dp0 rank 0: optimizer step while unit 5 awaits its backward");
  CHECK(ErrorOf([&] { vision.ReduceGradients(); }) ==
        "vision.s0 dp0 rank 0: gradient reduction while unit 5 awaits its backward");
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

TEST_CASE("two runs of one layout have the same bits", "[torch]") {
  Config config = SmallConfig();
  config.run.precision = Precision::kFloat32;
  SetLayout(config, "vision", {.tp = 2});
  SetLayout(config, "language", {.tp = 2, .pp = 2});
  const Outcome first = Run(config);
  const Outcome second = Run(config);
  CHECK(first.loss.loss == second.loss.loss);
  CHECK(first.gradients == second.gradients);
}

TEST_CASE("backwards whose weights follow later have the same bits as whole ones", "[torch]") {
  Config config = SmallConfig();
  config.run.precision = GENERATE(Precision::kFloat32, Precision::kFloat64);
  ModuleOf(config, "language").As<LlamaConfig>().tied_head = GENERATE(false, true);
  SetLayout(config, "vision", {.tp = 2});
  SetLayout(config, "language", {.tp = 2, .pp = 2});
  const Outcome whole = Run(config);
  Job job(config, /*split=*/true);
  const LossSums loss = job.Train(TwoMicrobatches(config), kScale);
  CHECK(loss.loss == whole.loss.loss);
  CHECK(job.ReduceGradients() == whole.squares);
  CHECK(job.Tensors(TensorKind::kGradient) == whole.gradients);
}

TEST_CASE("weight gradients that are owed stop the update, and come once", "[torch]") {
  const Config config = SmallConfig();
  Job job(config, /*split=*/true);
  job.Train(TwoMicrobatches(config), kScale);
  StageProgram& language = job.Program("language");
  CHECK(ErrorOf([&] { language.BackwardWeights(0); }) ==
        "language.s0 dp0 rank 1: weight gradients of unit 0 without a backward that was split");
}

TEST_CASE("float32 gradients are close to those of float64", "[torch]") {
  Config config = SmallConfig();
  const Outcome exact = Run(config);
  config.run.precision = Precision::kFloat32;
  SetLayout(config, "language", {.tp = 4});
  CHECK(Difference(exact.gradients, Run(config).gradients) < 1e-5);
}

}  // namespace
}  // namespace troupe
