#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "cli/commands.hpp"
#include "configs/loader.hpp"
#include "configs/toml_value.hpp"
#include "data/text/chat_template.hpp"
#include "files/output_file.hpp"
#include "layout/text.hpp"
#include "models/model_folder.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

struct InitArguments {
  std::string folder;
  std::string out;
  int ranks = 1;
};

/// Bytes of parameters, gradients and moments that a rank may hold in the layout that is proposed.
constexpr double kStateOfRank = 40e9;
/// Of each parameter that trains in bfloat16: value, rounded value, gradient, two moments.
constexpr double kBytesOfParameter = 4 + 2 + 4 + 8;

std::int64_t NumParameters(const ModelConfig& model) {
  std::vector<ParameterSpec> specs;
  ParameterList list(specs, "", false);
  model.AddParameters({.layers = {0, model.split_layers()->number}, .first = true, .last = true},
                      list);
  std::int64_t number = 0;
  for (const ParameterSpec& spec : specs) number += spec.num_elements();
  return number;
}

/// Returns the smallest tensor parallelism that divides the ranks and makes a rank's part of the
/// state small enough, else the largest that the sizes allow, up to the GPUs of a usual node.
int TensorParallelism(const ModelConfig& language, int ranks) {
  constexpr int kMostGpus = 8;
  int best = 1;
  for (int tp = 1; tp <= std::min(ranks, kMostGpus); ++tp) {
    if (ranks % tp != 0 || !language.AllowsTp(tp)) continue;
    best = tp;
    const auto parameters = static_cast<double>(NumParameters(language));
    if (parameters * kBytesOfParameter / tp <= kStateOfRank) break;
  }
  return best;
}

std::string RanksText(int ranks) {
  return ranks == 1 ? "\"0\"" : "\"0-" + std::to_string(ranks - 1) + "\"";
}

std::string SizeText(const Model& model) {
  return "\"" + std::string(model.kind().word) + "\", " + Millions(NumParameters(*model)) +
         " parameters";
}

/// The tables of the modules, the edge, and what depends on them.
class Text {
 public:
  Text(const InitArguments& arguments, const std::string& weights)
      : ranks_(arguments.ranks), weights_(weights) {}

  std::string Of(const std::optional<Model>& encoder, const Model& language) {
    const int tp = TensorParallelism(*language, ranks_);
    dp_ = ranks_ / tp;
    if (encoder) {
      text_ += "\n[model]\nfrom = " + Quoted(weights_) +
               "  # sizes, weights, tokenizer, image processing and prompt\n";
      AddEncoder(*encoder);
    }
    text_ += "\n[modules.language]  # " + SizeText(language) + "\n";
    if (!encoder) text_ += "weights = " + Quoted(weights_) + "\n";
    text_ += "ranks   = " + RanksText(ranks_) + "\nlayout  = { tp = " + std::to_string(tp) +
             ", dp = " + std::to_string(dp_) +
             " }\ncontext = " + std::to_string(ContextOf(encoder, language)) +
             "  # tokens of a sample, image tokens included\nfrozen  = false\n";
    if (encoder) {
      text_ +=
          "\n[[edges]]\nfrom = \"vision\"\nto   = \"language\"\n"
          "through = { frozen = false }  # the projector of the folder\n";
    }
    return text_;
  }
  /// Samples of a step: near 128, and a multiple of the replicas.
  int global_batch() const { return std::max(1, 128 / dp_) * dp_; }

 private:
  /// The context of LLaVA-1.5; of LLaVA-NeXT if images are cut into tiles.
  static std::int64_t ContextOf(const std::optional<Model>& encoder, const Model& language) {
    const std::int64_t usual = encoder && (*encoder)->tile_side() > 0 ? 4096 : 2048;
    return std::min(usual, language->text()->context);
  }

  void AddEncoder(const Model& encoder) {
    text_ += "\n[modules.vision]  # " + SizeText(encoder) + "\n";
    if (ranks_ == 1) {
      text_ += "inline_in = \"language\"\n";
    } else {
      text_ += "ranks  = " + RanksText(ranks_) +
               "  # the ranks of the language model, in turn with it\n" +
               "layout = { dp = " + std::to_string(ranks_) + " }\n";
    }
    text_ += "frozen = true  # false: it trains, too\n";
  }

  int ranks_;
  std::string weights_;
  int dp_ = 1;
  std::string text_;
};

/// The keys that say how texts become tokens, as far as the folder does not.
std::string TextKeys(const std::string& folder, bool states_tokenizer) {
  std::string keys;
  const auto has = [&](const char* name) {
    std::error_code unknown;
    return fs::exists(fs::path(folder) / name, unknown);
  };
  if (!has("tokenizer.json") && !has("tokenizer.model")) {
    return "# tokenizer = \"...\"     # the folder has none\n";
  }
  if (states_tokenizer) keys += "tokenizer = " + Quoted("hf:" + folder) + "\n";
  try {
    PromptOfFolder(folder);
  } catch (const std::runtime_error&) {
    keys +=
        "prompt = \"vicuna_v1\"      # or plain, llama3, chatml, lines: the folder has no known "
        "chat template\n";
  }
  return keys;
}

std::string ConfigText(const InitArguments& arguments) {
  const std::string folder = fs::absolute(arguments.folder).lexically_normal().string();
  const std::string weights = "hf:" + folder;
  const auto kinds = KindsInFolder(arguments.folder);
  std::optional<Model> encoder;
  std::optional<Model> language;
  for (const ModuleKind* kind : kinds) {
    if (kind == nullptr) continue;
    const Model model = ReadFolderModule(arguments.folder, kind).model;
    (model->emits_rows() ? encoder : language) = model;
  }
  if (!language) {
    throw ModelFolderError(arguments.folder +
                           "/config.json: expected a language model or a LLaVA; a vision encoder "
                           "alone has no loss to train with");
  }
  Text modules(arguments, weights);
  const std::string tables = modules.Of(encoder, *language);
  const std::string name = fs::path(folder).filename().string();
  return "# Written by `troupe init` from " + folder +
         ".\n# `troupe check` shows where it would run and what it needs; docs/config.md has all "
         "keys.\n"
         "schema = 1\n\n[run]\nname      = " +
         Quoted(name) +
         "\nepochs    = 1           # or steps\nprecision = \"bfloat16\"\n\n[cluster]\nranks   = " +
         std::to_string(arguments.ranks) +
         "\nbackend = \"cpu\"         # \"cuda\": a rank on each GPU\n" + tables +
         "\n[schedule]\nkind             = \"1f1b\"\nmicro_batch_size = 1\nglobal_batch     = " +
         std::to_string(modules.global_batch()) +
         "\n\n[optimizer]                # as LLaVA-1.5 was fine-tuned\nlearning_rate = 2e-5\n"
         "warmup_ratio  = 0.03\nschedule      = \"cosine\"\nbetas         = [0.9, 0.999]\n"
         "weight_decay  = 0.0\nclip_norm     = 1.0\n\n[data]\n"
         "train = \"train.json\"       # a list of rows: docs/data.md; `troupe data check` checks "
         "it\n" +
         TextKeys(folder, !encoder) +
         "\n"
         "[log]\ntensorboard = true\n";
}

int Init(const InitArguments& arguments) {
  std::error_code unknown;
  if (fs::exists(fs::symlink_status(arguments.out, unknown))) {
    std::cerr << "troupe init: --out: " << arguments.out
              << " exists; expected the name of a new file\n";
    return kExitBadInput;
  }
  ReplaceFile(arguments.out, ConfigText(arguments));
  std::cout << arguments.out << ": set data.train, then `troupe check " << arguments.out << "`\n";
  return kExitDone;
}

}  // namespace

void AddInit(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "init",
      "Write a configuration for a Hugging Face folder, commented, ready to edit: a LLaVA, or\n"
      "a language model. The layout is one that fits usual GPUs; `troupe check` prints what\n"
      "it needs.\n"
      "Exit code: 0 done, 1 the file cannot be written, 2 wrong arguments or folder.");
  auto arguments = std::make_shared<InitArguments>();
  verb->add_option("DIR", arguments->folder, "a Hugging Face folder")->required();
  verb->add_option("--ranks", arguments->ranks, "devices of the job")
      ->check(CLI::Range(1, 65'536))
      ->capture_default_str();
  verb->add_option("--out", arguments->out, "file to write; must not exist")
      ->required()
      ->type_name("FILE");
  SetCommand(*verb, command, [arguments] { return Init(*arguments); });
}

}  // namespace troupe
