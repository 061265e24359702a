// Families of models, and whole models, against what transformers computes with the same folders in
// float64.
#include "tests/torch/oracle.hpp"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "modules/torch/expert_choices.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe::oracle {
namespace {

constexpr double kExact = 1e-10;

void CheckClose(const std::vector<double>& wanted, const std::vector<double>& got) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(wanted[i]).epsilon(kExact));
}

/// Loss, gradients and five steps.
void CheckTrains(const Config& config, const Inputs& inputs, const Expected& expected) {
  {
    Job job(config);
    ReadAllWeights(job, config);
    const LossSums loss = job.Train({inputs}, 1.0);
    CHECK(loss.loss == Approx(expected.Numbers("loss")[0]).epsilon(kExact));
    job.ReduceGradients();
    const Values gradients = job.Tensors(TensorKind::kGradient);
    CHECK(Difference(expected.Of(config, "gradient", gradients), gradients) < kExact);
  }
  Job job(config);
  ReadAllWeights(job, config);
  const Trained trained = FiveSteps(job, inputs);
  CheckClose(expected.Numbers("losses"), trained.losses);
  CheckClose(expected.Numbers("norms"), trained.norms);
}

TEST_CASE("language models have the loss and the gradients of transformers, and train like them",
          "[torch][oracle]") {
  const char* const family = GENERATE("llama", "llama_tied", "llama_biased", "llama_linear",
                                      "llama3", "mistral", "qwen2", "qwen3");
  INFO(family);
  Config config = Load(family,
                       "cluster.ranks = 1\n[modules.language]\nweights = \"hf:FAMILY\"\n"
                       "ranks = \"0\"");
  SetLayout(config, "language",
            GENERATE(Layout{}, Layout{.tp = 2}, Layout{.tp = 4}, Layout{.pp = 2},
                     Layout{.tp = 4, .pp = 2}));
  const Expected expected(family);
  CheckTrains(config, InputsOf(family), expected);
}

constexpr const char* kAlone =
    "cluster.ranks = 1\n[modules.language]\nweights = \"hf:FAMILY\"\nranks = \"0\"";

TEST_CASE(
    "models with experts have the loss and the gradients of transformers, and train like them",
    "[torch][oracle][experts]") {
  const char* const family = GENERATE("mixtral", "qwen2_moe", "qwen3_moe");
  INFO(family);
  Config config = Load(family, kAlone);
  ModuleOf(config, "language").moe.balance_coefficient = 0.0;  // as transformers, unless asked
  SetLayout(config, "language",
            GENERATE(Layout{}, Layout{.tp = 4, .ep = 4}, Layout{.tp = 2, .pp = 2, .ep = 2},
                     Layout{.tp = 4, .ep = 2, .etp = 2}, Layout{.tp = 2, .etp = 2, .sp = false}));
  CheckTrains(config, InputsOf(family), Expected(family));
}

TEST_CASE(
    "balanced by microbatch, one stage has the gradients of the auxiliary loss of transformers",
    "[torch][oracle][experts]") {
  const char* const family = GENERATE("mixtral", "qwen2_moe", "qwen3_moe");
  INFO(family);
  Config config = Load(family, kAlone);
  ModuleConfig& module = ModuleOf(config, "language");
  module.moe = {.balance = Balance::kMicrobatch, .balance_coefficient = 3.0};
  SetLayout(config, "language", GENERATE(Layout{}, Layout{.tp = 4, .ep = 4}, Layout{.tp = 2}));
  Job job(config);
  ReadAllWeights(job, config);
  job.Train({InputsOf(family)}, 1.0);
  job.ReduceGradients();
  const Values gradients = job.Tensors(TensorKind::kGradient);
  CHECK(Difference(Expected(family).Of(config, "balanced", gradients), gradients) < kExact);
}

TEST_CASE("a rank whose experts no token chose takes part like the others",
          "[torch][oracle][experts]") {
  Config config = Load("qwen2_moe", kAlone);
  SetLayout(config, "language", {.tp = 4, .ep = 4});
  ExpertChoices choices;
  Job job(config);
  ReadAllWeights(job, config);
  {
    const RecordExpertChoices recording(choices);
    job.Train({InputsOf("qwen2_moe")}, 1.0);
  }
  std::vector<int> tokens(4);
  for (std::int64_t i = 0; i < 3 * 21; ++i) {
    const RoutedToken name{.module = "language", .layer = 1, .sample = i / 21, .token = i % 21};
    for (const std::int64_t expert : choices.Follow(name, {})) {
      ++tokens[static_cast<std::size_t>(expert)];
    }
  }
  CHECK(tokens[0] + tokens[1] + tokens[2] == 3 * 21 * 2);
  CHECK(tokens[3] == 0);
  job.ReduceGradients();
  int weights = 0;
  for (const auto& [name, values] : job.Tensors(TensorKind::kGradient)) {
    if (!name.starts_with("language.layers.1.mlp.experts.3.")) continue;
    ++weights;
    CHECK(std::ranges::all_of(values, [](double value) { return value == 0.0; }));
  }
  CHECK(weights == 3);
}

constexpr const char* kWhole =
    "cluster.ranks = 2\nmodel.from = \"hf:FAMILY\"\n[modules.vision]\nranks = \"0\"\n"
    "[modules.language]\nranks = \"1\"\n[[edges]]\nfrom = \"vision\"\nto = \"language\"\n";

TEST_CASE("whole models have the loss and the gradients of transformers, and train like them",
          "[torch][oracle]") {
  const std::string family =
      GENERATE("llava_clip_llama", "llava_clip_mistral", "llava_clip_qwen2", "llava_clip_qwen3",
               "llava_siglip_llama", "llava_siglip_mistral", "llava_siglip_qwen2",
               "llava_siglip_qwen3", "llava_next_clip_llama", "llava_next_siglip_qwen2");
  INFO(family);
  Config config = Load(family, kWhole);
  const auto [from, to] =
      GENERATE(table<Layout, Layout>({{{}, {}},
                                      {{.tp = 2}, {.tp = 4}},
                                      {{.pp = 2}, {.pp = 2}},
                                      {{.tp = 2, .pp = 2}, {.tp = 2, .pp = 2}}}));
  SetLayout(config, "vision", from);
  SetLayout(config, "language", to);
  config.edges[0].through->on = GENERATE(ProjectorEnd::kFrom, ProjectorEnd::kTo);
  const Expected expected(family);
  CheckTrains(config, InputsOf(family), expected);
}

TEST_CASE("in float32 models are as near to those of transformers as rounding allows",
          "[torch][oracle]") {
  constexpr double kNear = 1e-5;
  const auto recorded = nlohmann::json::parse(BytesOf("tests/oracle/float32.json"));
  const bool cut = GENERATE(false, true);
  for (const auto& [family, wanted] : recorded.items()) {
    INFO(family << (cut ? ", cut" : ""));
    const bool whole = family.starts_with("llava");
    Config config = Load(family, whole ? kWhole
                                       : "cluster.ranks = 1\n[modules.language]\n"
                                         "weights = \"hf:FAMILY\"\nranks = \"0\"");
    config.run.precision = Precision::kFloat32;
    if (cut && whole) SetLayout(config, "vision", {.tp = 2, .pp = 2});
    if (cut) SetLayout(config, "language", {.tp = 4, .pp = 2});
    const Inputs inputs = InputsOf(family);
    {
      Job once(config);
      ReadAllWeights(once, config);
      once.Train({inputs}, 1.0);
      once.ReduceGradients();
      const Values gradients = once.Tensors(TensorKind::kGradient);
      CHECK(Difference(Expected(family).Of(config, "gradient", gradients), gradients) < kNear);
    }
    Job job(config);
    ReadAllWeights(job, config);
    CHECK(job.Evaluate(inputs).loss == Approx(wanted["loss"].get<double>()).epsilon(kNear));
    const Trained trained = FiveSteps(job, inputs);
    for (std::size_t step = 0; step < trained.losses.size(); ++step) {
      CHECK(trained.losses[step] == Approx(wanted["losses"][step].get<double>()).epsilon(kNear));
      CHECK(trained.norms[step] == Approx(wanted["norms"][step].get<double>()).epsilon(kNear));
    }
  }
}

TEST_CASE("after five steps whole models have the parameters and moments of transformers",
          "[torch][oracle]") {
  const char* const family = GENERATE("llava_clip_llama", "llava_siglip_qwen3");
  INFO(family);
  Config config = Load(family, kWhole);
  SetLayout(config, "language", {.tp = 2, .pp = 2});
  const Expected expected(family);
  Job job(config);
  ReadAllWeights(job, config);
  FiveSteps(job, InputsOf(family));
  for (const auto& [kind, word] : {std::pair{TensorKind::kParameter, "parameter"},
                                   std::pair{TensorKind::kFirstMoment, "first_moment"},
                                   std::pair{TensorKind::kSecondMoment, "second_moment"}}) {
    const Values got = job.Tensors(kind);
    CHECK(Difference(expected.Of(config, word, got), got) < kExact);
  }
}

TEST_CASE("vision encoders have the rows and the gradients of transformers", "[torch][oracle]") {
  const char* const family = GENERATE("clip", "clip_gelu", "siglip");
  const int layer = GENERATE(-1, -2);
  const bool final_norm = GENERATE(false, true);
  // Only a SigLIP norms the rows that it gives by itself.
  if (final_norm && (layer != -1 || std::string(family) != "siglip")) return;
  INFO(family << " layer " << layer);
  Config config =
      Load(family,
           "cluster.ranks = 2\n[modules.vision]\nweights = \"hf:FAMILY\"\nranks = \"0\"\n"
           "[modules.language]\nkind = \"llama\"\nvocab = 32\nhidden = 16\n"
           "layers = 1\nheads = 2\ncontext = 64\nranks = \"1\"\n"
           "[[edges]]\nfrom = \"vision\"\nto = \"language\"\n");
  auto& encoder = ModuleOf(config, "vision").As<PatchEncoder>();
  encoder.feature_layer = layer;
  encoder.final_norm = final_norm;
  Job job(config);
  ReadAllWeights(job, config);
  const Expected expected(family);
  Inputs inputs;
  const Buffer images = expected.Read("images");
  inputs.fields["vision"] = {images, {1, 1}};
  StageProgram& program = job.Program("vision");
  const ForwardResult forward =
      program.Forward({.inputs = {}, .data = std::make_shared<const Inputs>(inputs)});
  const std::vector<double> rows =
      expected.Numbers(final_norm ? "final" : "rows" + std::to_string(layer));
  const auto* got = forward.outputs.at(0).as<double>();
  REQUIRE(forward.outputs[0].num_elements() == std::ssize(rows));
  CHECK(Difference({{"rows", rows}}, {{"rows", {got, got + rows.size()}}}) < kExact);
  const Buffer weights = expected.Read("weights");
  program.Backward({.gradients = {Buffer::Wrap(weights.owner(), weights.data(),
                                               forward.outputs[0].shape(), DType::kFloat64)}});
  if (layer != -2) return;
  Values gradients;
  for (const TensorPiece& piece : program.Tensors(TensorKind::kGradient)) {
    const auto* values = piece.value.as<double>();
    gradients[piece.name].assign(values, values + piece.value.num_elements());
  }
  const Values wanted = expected.Of(config, "gradient", gradients);
  CHECK(Difference(wanted, gradients) < kExact);
}

}  // namespace
}  // namespace troupe::oracle
