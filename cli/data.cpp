#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "configs/loader.hpp"
#include "data/counted_set.hpp"
#include "data/epochs.hpp"
#include "data/sample.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

struct DataCheckArguments {
  ConfigArguments config;  ///< the path may name a list
  bool quick = false;
};

/// A list and its faults.
struct Checked {
  CountedSet counted;
  std::vector<DataFault> faults;  ///< in the order of the rows
  std::int64_t num_bad_rows = 0;
};

Checked CheckList(const std::string& file, const SampleFormat& format, FileDepth depth) {
  Checked checked;
  std::set<std::int64_t> rows;
  checked.counted = CountSet(file, format, depth, [&](const DataFault& fault) {
    checked.faults.push_back(fault);
    if (fault.kind != FaultKind::kFile) rows.insert(fault.row);
  });
  if (checked.faults.empty() && checked.counted.set.rows.empty()) {
    checked.faults.push_back({FaultKind::kFile, 0, "", "expected at least one row, found none"});
  }
  std::ranges::stable_sort(checked.faults, {}, &DataFault::row);
  checked.num_bad_rows = std::ssize(rows);
  return checked;
}

std::string Size(const ImageFacts& facts) {
  return std::to_string(facts.width) + " x " + std::to_string(facts.height);
}

/// "3 png of 32 x 32 to 640 x 480"; empty for none.
std::string FormatText(ImageFormat format, const FormatCount& images) {
  if (images.count == 0) return "";
  const std::string smallest = Size(*images.smallest);
  const std::string largest = Size(*images.largest);
  return std::to_string(images.count) + " " + std::string(ToString(format)) + " of " + smallest +
         (smallest == largest ? "" : " to " + largest);
}

void PrintLine(const char* name, const std::string& text) {
  std::printf("  %-7s %s\n", name, text.c_str());
}

/// Returns the word for the files of a list: "file" if modules read several types of fields.
RowField FileOf(const SampleFormat& format) {
  RowField file;
  for (const RowField& field : format.fields) {
    file.word = field.word == format.fields.front().word ? field.word : "file";
    if (file.word == "file") break;
  }
  return file;
}

void PrintSummary(const Checked& checked, const SampleFormat& format) {
  const RowField file = FileOf(format);
  const CountedSet& counted = checked.counted;
  const auto size = std::ssize(counted.set.rows);
  std::printf("%s\n", counted.set.file.c_str());
  PrintLine("rows", std::to_string(size) + ", " + std::to_string(counted.num_without_files) +
                        " without " + file.WithArticle() + ", " +
                        std::to_string(checked.num_bad_rows) + " bad");
  std::string files = std::to_string(counted.files.num_files);
  for (std::size_t i = 0; i < counted.files.formats.size(); ++i) {
    const std::string text = FormatText(static_cast<ImageFormat>(i), counted.files.formats[i]);
    if (!text.empty()) files += ", " + text;
  }
  PrintLine((file.word + "s").c_str(), files);
}

/// Prints the token counts of a list that a configuration names.
void PrintFit(const CountedSet& counted, const SampleFormat& format) {
  PrintLine("tokens", "at most " + std::to_string(counted.most_tokens) + ", the context is " +
                          std::to_string(format.context) + "; " + Counted(counted.num_cut, "row") +
                          (counted.num_cut == 1 ? " is longer and loses its end"
                                                : " are longer and lose their end"));
}

/// Prints the epochs over the rows that can be trained on. Those of packs depend on the order of
/// training, which `train` knows.
void PrintEpochs(const Config& config, const Checked& checked) {
  const std::int64_t rows = std::ssize(checked.counted.set.rows) - checked.num_bad_rows;
  if (rows == 0 || config.data.packing) return;
  const std::int64_t steps = WithSteps(config, rows).run.steps;
  const auto samples = static_cast<double>(steps) * static_cast<double>(config.global_batch());
  PrintLine("epochs", Formatted("%.1f: ", samples / static_cast<double>(rows)) +
                          Counted(steps, "step") + " of " +
                          Counted(config.global_batch(), "sample"));
}

void PrintFaults(const Checked& checked) {
  for (const DataFault& fault : checked.faults) {
    std::printf("%s\n", FaultLine(checked.counted.set.file, fault).c_str());
  }
}

/// Returns the exit code. Prints the next step if there are faults.
int ExitCodeOf(const std::vector<DataFault>& faults) {
  if (faults.empty()) {
    std::printf("no faults\n");
    return kExitDone;
  }
  const bool all_skippable = std::ranges::none_of(
      faults, [](const DataFault& fault) { return fault.kind == FaultKind::kFile; });
  std::printf("%s: correct %s\n", Counted(std::ssize(faults), "fault").c_str(),
              all_skippable ? "these rows and files, take the rows out of the list, or train "
                              "without them: data.on_error = \"skip\""
                            : "the files first; no row of a list that cannot be read is trained");
  return kExitFailed;
}

int CheckOneFile(const std::string& file, FileDepth depth) {
  const SampleFormat plain = PlainFormat();
  const Checked checked = CheckList(file, plain, depth);
  PrintFaults(checked);
  PrintSummary(checked, plain);
  return ExitCodeOf(checked.faults);
}

int CheckConfig(const ConfigArguments& arguments, FileDepth depth) {
  const Config config = LoadConfig(arguments.path, arguments.overrides).config;
  if (config.data.train.empty()) {
    std::printf("%s: synthetic modules read no data\n", arguments.path.c_str());
    return kExitDone;
  }
  const SampleFormat format = FormatOf(config);
  std::vector<Checked> lists;
  std::vector<DataFault> faults;
  for (const std::string& file : {config.data.train, config.data.held_out}) {
    if (file.empty()) continue;
    const Checked& list = lists.emplace_back(CheckList(file, format, depth));
    PrintFaults(list);
    std::ranges::copy(list.faults, std::back_inserter(faults));
  }
  for (const Checked& list : lists) {
    PrintSummary(list, format);
    PrintFit(list.counted, format);
    if (&list == &lists.front()) PrintEpochs(config, list);
  }
  return ExitCodeOf(faults);
}

void AddDataCheck(CLI::App& data, Command& command) {
  auto* check = data.add_subcommand(
      "check",
      "Check every row and every image of a list, or of the lists that a configuration names, and\n"
      "print all faults, one a line, and a summary.\n"
      "Exit code: 0 no faults, 1 faults, 2 wrong arguments or configuration.");
  auto arguments = std::make_shared<DataCheckArguments>();
  check
      ->add_option("FILE", arguments->config.path,
                   "a list (*.json, *.jsonl), or a configuration (*.toml)")
      ->required();
  check
      ->add_option("--set", arguments->config.overrides,
                   "KEY=VALUE, over the configuration's; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  check->add_flag("--quick", arguments->quick,
                  "check of images only that they exist, their format and their size");
  SetCommand(*check, command, [arguments] {
    const FileDepth depth = arguments->quick ? FileDepth::kHeader : FileDepth::kDecode;
    const std::string& path = arguments->config.path;
    const bool is_config = std::filesystem::path(path).extension() == ".toml";
    return is_config ? CheckConfig(arguments->config, depth) : CheckOneFile(path, depth);
  });
}

}  // namespace

void AddData(CLI::App& app, Command& command) {
  auto* data = app.add_subcommand("data",
                                  "Check data sets.\n"
                                  "Exit code: 0 done, 1 failed, 2 wrong arguments.");
  data->require_subcommand(1);
  AddDataCheck(*data, command);
}

}  // namespace troupe
