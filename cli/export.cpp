#include "checkpoint/export.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "app/run_directory.hpp"
#include "app/run_folders.hpp"
#include "app/saved_run.hpp"
#include "checkpoint/export_adapters.hpp"
#include "cli/commands.hpp"
#include "configs/loader.hpp"
#include "data/sample.hpp"
#include "data/text/chat_template.hpp"
#include "data/text/prompt.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

constexpr const char* kApart = "apart";

struct ExportArguments {
  std::string run;
  std::string out;
  std::string adapters = "merged";
  std::vector<std::string> overrides;
};

SpecialTokens TokensOf(const Config& config) {
  const SampleFormat format = FormatOf(config);
  const Tokenizer& tokenizer = *format.tokenizer;
  SpecialTokens tokens;
  tokens.pad = tokenizer.pad();
  tokens.bos = tokenizer.bos();
  tokens.eos = tokenizer.eos();
  for (std::size_t i = 0; i < format.fields.size(); ++i) {
    tokens.added.push_back(
        {tokenizer.placeholder(static_cast<int>(i)), format.fields[i].placeholder});
  }
  if (!tokens.added.empty()) tokens.image = tokens.added.front().id;
  tokens.added.push_back({tokenizer.pad(), "<pad>"});
  return tokens;
}

ExportPlan PlanOf(const ExportArguments& arguments, const Config& config,
                  const SavedParameters& saved) {
  if (arguments.adapters == kApart) return PlanAdapters(config, saved);
  return PlanExport(config, saved, TokensOf(config));
}

/// Writes `plan`, and says what it writes.
void Write(const ExportArguments& arguments, const SavedRun& run, const ExportPlan& plan) {
  std::cout << "exporting " << run.parameters << ", after " << Counted(run.saved.steps(), "step")
            << '\n';
  if (!plan.reason.empty()) {
    std::cout << "one folder for each part, since " << plan.reason << '\n';
  }
  std::cout << std::flush;
  const ExportedSize size = WriteExport(
      plan, run.saved, arguments.out, [](const std::string& file, std::uint64_t num_bytes) {
        std::cout << "  " << file << ", " << Bytes(num_bytes) << " so far\n" << std::flush;
      });
  std::cout << arguments.out << ": " << (plan.model.empty() ? "" : plan.model + ", ")
            << size.num_tensors << " tensors, " << Bytes(size.num_bytes) << '\n';
}

/// The arguments with which `troupe generate` takes the folder's texts as the run did, "" if it needs
/// none.
std::string ArgumentsToAsk(const std::string& folder, const Config& config) {
  const auto has = [&](const char* name) {
    std::error_code unknown;
    return std::filesystem::exists(folder + "/" + name, unknown);
  };
  std::string arguments;
  if (!has("tokenizer.json") && !has("tokenizer.model")) {
    arguments += " --tokenizer " + config.data.tokenizer;
  }
  const PromptKind kind = FormatOf(config).prompt;
  try {
    if (PromptOfFolder(folder) == kind) return arguments;
  } catch (const std::runtime_error&) {  // no known chat template
  }
  return arguments + " --format " + std::string(WordOf(kind));
}

int Export(const ExportArguments& arguments) {
  try {
    RequireNewFolder(arguments.out);
    if (RunDirectoryOf(arguments.run).empty()) {
      throw std::invalid_argument(arguments.run + ": expected a run directory or a checkpoint in " +
                                  "one, found none");
    }
    const SavedRun run = OpenSavedRun(arguments.run);
    const Config config = LoadConfig(ResolvedFile(run.directory), arguments.overrides).config;
    RequireSameFolders(run.directory, config);
    const ExportPlan plan = PlanOf(arguments, config, run.saved);
    Write(arguments, run, plan);
    const bool asks = plan.folders.size() == 1 && !plan.folders.front().config_json.empty() &&
                      std::ranges::any_of(config.modules, [](const ModuleConfig& module) {
                        return module.model->text().has_value();
                      });
    const std::string needed = asks ? ArgumentsToAsk(arguments.out, config) : "";
    if (!needed.empty())
      std::cout << "to ask it: troupe generate " << arguments.out << needed << '\n';
  } catch (const std::invalid_argument& e) {
    std::cerr << "troupe export: " << e.what() << '\n';
    return kExitBadInput;
  }
  return kExitDone;
}

}  // namespace

void AddExport(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "export",
      "Write the parameters of a run as a Hugging Face folder, which transformers and vLLM\n"
      "load: its final ones, or those of its newest checkpoint, also while it goes on. A\n"
      "vision encoder and a language model with a projector \"mlp2\" become one LLaVA; other\n"
      "modules become a folder each. Tensors keep the types and names of the folders that\n"
      "the modules started from, which must still be there; tensors that training does not\n"
      "use, the tokenizer and the image processor come along.\n"
      "Exit code: 0 done, 1 it cannot be read or written, 2 wrong arguments.");
  auto arguments = std::make_shared<ExportArguments>();
  verb->add_option("RUN", arguments->run,
                   "run directory (runs/latest, or NAME for the newest runs/NAME-TIME), or one\n"
                   "checkpoint: RUN/checkpoints/step-N")
      ->required()
      ->transform(FindRun);
  verb->add_option("--out", arguments->out, "folder to write, new or empty")
      ->required()
      ->type_name("DIR");
  AddChoice(*verb, "--adapters", {arguments->adapters, kApart}, arguments->adapters,
            "adapters are added to their weights, or written alone, as PEFT reads them");
  AddRunOverrides(*verb, arguments->overrides);
  SetCommand(*verb, command, [arguments] { return Export(*arguments); });
}

}  // namespace troupe
