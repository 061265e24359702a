// Families of models against what transformers computes with the same folders in float64.
// tools/oracle/record_models.py has made tests/oracle/.
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "checkpoint/weights_folder.hpp"
#include "configs/loader.hpp"
#include "models/model_folder.hpp"
#include "tests/data/scratch_folder.hpp"
#include "tests/torch/job.hpp"

namespace troupe {
namespace {

constexpr double kExact = 1e-10;

std::string FolderOf(const std::string& family) {
  return std::filesystem::absolute("tests/oracle/" + family).string();
}

/// A module `name` that starts from the folder of a family, in float64.
Config ConfigOf(const std::string& name, const std::string& family, const std::string& rest) {
  const ScratchFolder folder;
  const std::string file =
      folder.Write("run.toml", "run.precision = \"float64\"\n" + rest + "[modules." + name +
                                   "]\nweights = \"hf:" + FolderOf(family) +
                                   "\"\nranks = \"0\"\n[data]\ntrain = \"none.json\"\n"
                                   "tokenizer = \"sentencepiece:none.model\"\n");
  return LoadConfig(file).config;
}

void ReadAllWeights(Job& job, const Config& config) {
  for (const ModuleConfig& module : config.modules) {
    if (!module.weights) continue;
    for (int dp = 0; dp < module.layout.dp; ++dp) {
      for (int pp = 0; pp < module.layout.pp; ++pp) {
        for (int tp = 0; tp < module.layout.tp; ++tp) {
          StageProgram& program = job.Program(module.name, pp, dp, tp);
          const auto pieces = program.Tensors(TensorKind::kParameter);
          ReadWeights(config, pieces);
          program.SetTensors(TensorKind::kParameter, pieces);
        }
      }
    }
  }
}

/// What transformers computed.
class Expected {
 public:
  explicit Expected(const std::string& family)
      : file_(FolderOf(family) + "/expected.safetensors") {}

  Buffer Read(const std::string& name) const { return file_.Read(name); }
  std::vector<double> Values(const std::string& name) const {
    const Buffer buffer = Read(name);
    const auto* values = buffer.as<double>();
    return {values, values + buffer.num_elements()};
  }
  /// The gradients of `module` by our names.
  std::map<std::string, std::vector<double>> Gradients(const ModuleConfig& module,
                                                       const std::vector<std::string>& own) const {
    const auto has = [&](const std::string& name) { return file_.Find("gradient/" + name); };
    const ForeignNames& names = *FindNames(module.model.kind(), has);
    std::map<std::string, std::vector<double>> gradients;
    for (const std::string& name : own) {
      gradients[name] = Values(
          "gradient/" + NameIn(names, std::string_view(name).substr(module.name.size() + 1)));
    }
    return gradients;
  }

 private:
  SafetensorsReader file_;
};

std::vector<std::string> NamesOf(const std::map<std::string, std::vector<double>>& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, values] : tensors) names.push_back(name);
  return names;
}

TEST_CASE("language models have the loss and the gradients of transformers", "[torch][oracle]") {
  const char* const family = GENERATE("llama", "llama_tied", "llama_biased", "llama_linear",
                                      "llama3", "mistral", "qwen2", "qwen3");
  INFO(family);
  Config config = ConfigOf("language", family, "cluster.ranks = 1\n");
  const Layout layout = GENERATE(Layout{}, Layout{.tp = 2}, Layout{.tp = 4}, Layout{.pp = 2},
                                 Layout{.tp = 4, .pp = 2});
  SetLayout(config, "language", layout);
  Job job(config);
  ReadAllWeights(job, config);
  const Expected expected(family);
  Inputs inputs;
  inputs.tokens = expected.Read("tokens");
  inputs.labels = expected.Read("labels");
  inputs.content = Buffer::Zeros(inputs.labels.shape(), DType::kUInt8);
  for (std::int64_t i = 0; i < inputs.tokens.shape()[0]; ++i) {
    inputs.table.samples.push_back(i);
    inputs.table.rows.push_back(0);
  }
  const LossSums loss = job.Train({inputs}, 1.0);
  CHECK(loss.loss == Approx(expected.Values("loss")[0]).epsilon(kExact));
  job.ReduceGradients();
  const auto gradients = job.Tensors(TensorKind::kGradient);
  const auto wanted = expected.Gradients(config.modules[0], NamesOf(gradients));
  CHECK(Difference(wanted, gradients) < kExact);
}

TEST_CASE("vision encoders have the rows and the gradients of transformers", "[torch][oracle]") {
  const char* const family = GENERATE("clip", "clip_gelu", "siglip");
  const int layer = GENERATE(-1, -2);
  const bool final_norm = GENERATE(false, true);
  // Only a SigLIP norms the rows that it gives by itself.
  if (final_norm && (layer != -1 || std::string(family) != "siglip")) return;
  INFO(family << " layer " << layer);
  Config config =
      ConfigOf("vision", family,
               "cluster.ranks = 2\n[modules.language]\nkind = \"llama\"\nvocab = 32\nhidden = 16\n"
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
      expected.Values(final_norm ? "final" : "rows" + std::to_string(layer));
  const auto* got = forward.outputs.at(0).as<double>();
  REQUIRE(forward.outputs[0].num_elements() == std::ssize(rows));
  CHECK(Difference({{"rows", rows}}, {{"rows", {got, got + rows.size()}}}) < kExact);
  const Buffer weights = expected.Read("weights");
  program.Backward({.gradients = {Buffer::Wrap(weights.owner(), weights.data(),
                                               forward.outputs[0].shape(), DType::kFloat64)}});
  if (layer != -2) return;
  std::map<std::string, std::vector<double>> gradients;
  for (const TensorPiece& piece : program.Tensors(TensorKind::kGradient)) {
    const auto* values = piece.value.as<double>();
    gradients[piece.name].assign(values, values + piece.value.num_elements());
  }
  const auto wanted = expected.Gradients(ModuleOf(config, "vision"), NamesOf(gradients));
  CHECK(Difference(wanted, gradients) < kExact);
}

}  // namespace
}  // namespace troupe
