#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "app/run_directory.hpp"
#include "app/saved_run.hpp"
#include "checkpoint/folder_facts.hpp"
#include "checkpoint/manifest.hpp"
#include "cli/checkpoints.hpp"
#include "cli/commands.hpp"
#include "kinds/foreign.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

/// Names that are printed of a list; the number of the others follows.
constexpr std::size_t kShownNames = 2;

std::string Names(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kShownNames);
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(shown));
  const std::string more =
      names.size() > shown ? " and " + std::to_string(names.size() - shown) + " more" : "";
  return Listed(first, ", ") + more;
}

std::string TypesText(const FolderPart& part) {
  std::string text;
  for (const auto& [type, count] : part.types) {
    text += (text.empty() ? "" : ", ") + ToString(type);
    if (part.types.size() > 1) text += " x " + std::to_string(count);
  }
  return text;
}

void PrintPart(const FolderPart& part) {
  std::cout << "  " << part.what
            << std::string(12 - std::min<std::size_t>(part.what.size(), 11), ' ');
  if (part.num_tensors == 0) {
    std::cout << "no tensors of it are in the folder\n";
  } else {
    std::cout << Counted(part.num_tensors, "tensor") << " named " << part.prefix << "..., "
              << Millions(part.num_parameters) << " parameters, " << TypesText(part) << ", "
              << Bytes(part.num_bytes) << '\n';
  }
  if (!part.failure.empty()) std::cout << "    refused: " << part.failure << '\n';
  if (part.num_tensors > 0 && !part.missing.empty()) {
    std::cout << "    missing: " << Names(part.missing) << '\n';
  }
  if (part.failure.empty() && !part.unused.empty()) {
    std::cout << "    not used by training, kept on export: " << Names(part.unused) << '\n';
  }
}

int InspectFolder(const std::string& folder) {
  const FolderFacts facts = ReadFolderFacts(folder);
  std::cout << folder << ": " << Counted(static_cast<std::int64_t>(facts.num_files), "file") << ", "
            << Bytes(facts.num_bytes) << " of tensors\n";
  for (const FolderPart& part : facts.parts) PrintPart(part);
  if (!facts.defaulted.empty()) {
    std::cout << "  not stated in config.json: "
              << Listed(facts.defaulted, ", ",
                        [](const DefaultedKey& key) { return key.key + " = " + key.value; })
              << '\n';
  }
  if (!facts.unknown.empty()) std::cout << "  unknown tensors: " << Names(facts.unknown) << '\n';
  const bool good = std::ranges::all_of(facts.parts, [](const FolderPart& part) {
    return part.failure.empty() && part.missing.empty() && part.num_tensors > 0;
  });
  return good ? kExitDone : kExitFailed;
}

int InspectAny(const std::string& path) {
  if (!std::filesystem::is_directory(path)) {
    throw ModelFolderError(path + ": expected a folder or the name of a run, found none");
  }
  const bool is_run = RunDirectoryOf(path) == path;
  return is_run || ReadManifest(path) ? InspectCheckpoint(path) : InspectFolder(path);
}

}  // namespace

void AddCkpt(CLI::App& app, Command& command) {
  auto* ckpt = app.add_subcommand("ckpt",
                                  "Look into folders of weights, and into checkpoints, also while\n"
                                  "the job runs that writes them.\n"
                                  "Exit code: 0 done, 1 something is wrong, 2 wrong arguments.");
  ckpt->require_subcommand(1);
  AddCheckpointVerbs(*ckpt, command);
  auto* verb = ckpt->add_subcommand(
      "inspect",
      "Print what a Hugging Face folder holds: modules, the names of their tensors, counts and\n"
      "types, the keys that config.json leaves out with the values that replace them, and\n"
      "tensors that are missing or unknown. Of a checkpoint, or the newest one of a run, its\n"
      "step, its place in the data, modules and files. Reads headers only.\n"
      "Exit code: 0 it can be used, 1 something is missing or not supported, 2 wrong arguments.");
  auto folder = std::make_shared<std::string>();
  verb->add_option("DIR", *folder, "a Hugging Face folder, RUN, or RUN/checkpoints/step-N")
      ->required()
      ->transform(FindRun);
  SetCommand(*verb, command, [folder] { return InspectAny(*folder); });
}

}  // namespace troupe
