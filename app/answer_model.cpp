#include "app/answer_model.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "app/handed_config.hpp"
#include "app/run_directory.hpp"
#include "app/run_folders.hpp"
#include "app/saved_run.hpp"
#include "checkpoint/folder_facts.hpp"
#include "checkpoint/weights_folder.hpp"
#include "configs/toml_value.hpp"
#include "data/text/chat_template.hpp"
#include "data/text/prompt.hpp"
#include "files/text_file.hpp"
#include "models/generation_config.hpp"
#include "models/model_folder.hpp"
#include "modules/torch/generator.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// The one rank that computes all modules.
void PutOnOneRank(Config& config) {
  for (ModuleConfig& module : config.modules) {
    module.ranks = {0};
    module.layout = {};
    module.inline_in = {};
    module.layers_per_stage = {};
    module.offload = Offload::kNone;
    module.recompute = {};
    module.frozen = true;
    module.chunks = 1;
  }
  for (EdgeConfig& edge : config.edges) {
    if (edge.through) edge.through->frozen = true;
  }
  config.cluster.ranks = 1;
}

/// The configuration of a run that would start from `folder`.
std::string ConfigText(const std::string& folder) {
  const std::string weights = Quoted(std::string(kHuggingFace) + folder);
  const auto kinds = KindsInFolder(folder);
  const auto has = [&](bool emits_rows) {
    return std::ranges::any_of(kinds, [&](const ModuleKind* kind) {
      return kind != nullptr && kind->make()->emits_rows() == emits_rows;
    });
  };
  if (!has(false)) {
    throw ModelFolderError(folder + "/config.json: expected a language model or a LLaVA");
  }
  std::string text = "cluster.ranks = 1\n[data]\ntrain = \"none.json\"\ntokenizer = " + weights +
                     "\n[modules.language]\nranks = \"0\"\nweights = " + weights + "\n";
  if (has(true)) {
    text += "[model]\nfrom = " + weights +
            "\n[modules.vision]\nranks = \"0\"\n[[edges]]\nfrom = \"vision\"\nto = \"language\"\n";
  }
  return text;
}

/// The type that most tensors of the language model have, as one that is computed in.
Precision PrecisionOf(const std::string& folder) {
  std::map<StoredType, std::int64_t> types;
  try {
    for (const FolderPart& part : ReadFolderFacts(folder).parts) {
      for (const auto& [type, count] : part.types) types[type] += count;
    }
  } catch (const ModelFolderError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw ModelFolderError(error.what());
  }
  const auto most = std::ranges::max_element(
      types, {}, [](const auto& type_and_count) { return type_and_count.second; });
  if (most == types.end()) return Precision::kFloat32;
  if (most->first == StoredType::kBFloat16) return Precision::kBFloat16;
  return most->first == StoredType::kFloat64 ? Precision::kFloat64 : Precision::kFloat32;
}

AnswerStops StopsOf(const Config& config, const SampleFormat& format) {
  AnswerStops stops;
  stops.tokens.push_back(format.tokenizer->eos());
  const AnswerEnd end = AnswerEndOf(format.prompt);
  stops.text = end.text;
  if (const auto special = format.tokenizer->special(end.special)) {
    stops.tokens.push_back(*special);
  }
  const std::string folder = HuggingFaceFolder(config.data.tokenizer);
  if (folder.empty()) return stops;
  const std::vector<std::int64_t> ends = EndTokensOf(folder);
  stops.tokens.insert(stops.tokens.end(), ends.begin(), ends.end());
  return stops;
}

bool HasConfig(const std::string& path) {
  return WhyNotOpened((fs::path(path) / "config.json").string()).empty();
}

/// Throws std::invalid_argument, naming the argument, if a folder lacks what turns texts into tokens.
void RequireTexts(const std::string& folder, const AnswerOptions& options) {
  const auto has = [&](const char* name) {
    return WhyNotOpened((fs::path(folder) / name).string()).empty();
  };
  if (!options.tokenizer.empty()) return;
  if (!has("tokenizer.json") && !has("tokenizer.model")) {
    throw std::invalid_argument(folder + ": expected tokenizer.json or tokenizer.model, found " +
                                "neither; state --tokenizer");
  }
  if (options.prompt != "auto") return;
  try {
    PromptOfFolder(folder);
  } catch (const std::runtime_error&) {
    throw std::invalid_argument(folder + ": expected a known chat template, found none; state " +
                                "--format: plain, vicuna_v1, llama3, chatml or lines");
  }
}

void FillFromRun(const SavedRun& run, const std::vector<TensorPiece>& parameters,
                 const Config& config) {
  std::vector<TensorPiece> in_folders;
  for (const TensorPiece& piece : parameters) {
    if (!run.saved.Has(piece.name)) {
      in_folders.push_back(piece);
      continue;
    }
    const Buffer value = run.saved.Read(piece.name);
    if (value.shape() != piece.global_shape) {
      throw std::runtime_error(run.parameters + ": tensor " + piece.name + ": expected " +
                               ToString(piece.global_shape) + ", got " + ToString(value.shape()));
    }
    const Buffer target = piece.value;
    ConvertFloats(StoredTypeOf(value.dtype()), value.data(),
                  static_cast<std::size_t>(value.num_elements()), StoredTypeOf(target.dtype()),
                  target.data());
  }
  for (const TensorPiece& piece : in_folders) {
    if (piece.in_folder) continue;
    throw std::runtime_error(run.parameters + ": expected tensor " + piece.name + ", found none");
  }
  ReadWeights(config, in_folders);
}

}  // namespace

AnswerSource OpenAnswerSource(const std::string& path, const AnswerOptions& options) {
  AnswerSource source;
  const std::string run = RunDirectoryOf(path);
  source.parameters = path;
  if (!run.empty()) {
    source.run = OpenSavedRun(path);
    source.parameters = source.run->parameters;
    source.config = LoadConfig(ResolvedFile(run), options.overrides).config;
    RequireSameFolders(run, source.config);
  } else if (HasConfig(path)) {
    RequireTexts(path, options);
    const std::string folder = fs::absolute(path).lexically_normal().string();
    source.config =
        LoadConfigOf({.path = path, .overrides = {}}, HandedConfig(ConfigText(folder)).Release())
            .config;
    source.config.run.precision = PrecisionOf(folder);
  } else {
    throw std::invalid_argument(path + ": expected a Hugging Face folder, a run directory or a " +
                                "checkpoint in one, found none");
  }
  const fs::path named = fs::path(source.run ? run : path).lexically_normal();
  source.name = (named.has_filename() ? named : named.parent_path()).filename().string();
  Config& config = source.config;
  if (options.precision) config.run.precision = *options.precision;
  if (options.prompt != "auto") config.data.prompt = options.prompt;
  if (!options.tokenizer.empty()) config.data.tokenizer = options.tokenizer;
  CheckWeights(config);  // while it is known what trained: that may not be in a folder
  PutOnOneRank(config);
  source.format = FormatOf(config);
  for (const ModuleConfig* encoder : DataEncoders(config)) source.encoders.push_back(encoder->name);
  source.stops = StopsOf(config, source.format);
  return source;
}

bool AnswerSource::is_large() const {
  constexpr std::int64_t kLarge = 100'000'000;
  std::int64_t elements = 0;
  for (const auto& [own, spec] : AllParameters(config)) elements += spec.num_elements();
  return elements >= kLarge;
}

std::unique_ptr<TokenModel> ReadAnswerModel(const AnswerSource& source, int device) {
  auto model = MakeGenerator(source.config, {.device = device});
  const std::vector<TensorPiece> parameters = model->Parameters();
  if (source.run) {
    FillFromRun(*source.run, parameters, source.config);
  } else {
    ReadWeights(source.config, parameters);
  }
  model->SetParameters(parameters);
  return model;
}

}  // namespace troupe
