#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/data/data.hpp"
#include "configs/loader.hpp"
#include "data/epochs.hpp"
#include "data/measured_file.hpp"
#include "data/row_source.hpp"
#include "data/rows/shards.hpp"
#include "data/sample.hpp"
#include "files/usable_cores.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

struct DataCheckArguments {
  ConfigArguments config;  ///< the path may name a list
  bool quick = false;
};

/// A fault and the file that has it.
struct LocatedFault {
  std::string file;
  DataFault fault;
};

/// The files of a source, and their faults.
struct Checked {
  std::string name;  ///< as the user wrote it
  std::int64_t num_files = 0;
  RowSums sums;
  FileSurvey files;
  std::vector<LocatedFault> faults;  ///< in the order of the rows
};

void AddSurvey(const FileSurvey& of, FileSurvey& to) {
  to.num_files += of.num_files;
  for (std::size_t i = 0; i < of.formats.size(); ++i) to.formats[i].Add(of.formats[i]);
}

/// Throws FaultError if a file does not have the rows that its index has. Its size and time may be the same.
void RequireAsIndexed(const std::string& path, const RowIndex& read, const SetTerms& terms,
                      std::size_t num_encoders) {
  const auto stored = FindIndex(path, num_encoders, terms);
  if (!stored || stored->digest == read.digest()) return;
  throw FaultError(path, {FaultKind::kFile, 0, "",
                          "its rows are not those of its index " + stored->path +
                              ", though its size and time are: restore the file, or remove the "
                              "index if it is meant to be so"});
}

/// `run`: how a run opens it; null if no configuration is known.
Checked CheckSource(const std::string& name, const SampleFormat& format, FileDepth depth,
                    const SetTerms* run = nullptr) {
  Checked checked;
  checked.name = name;
  const auto add = [&](const std::string& file, const DataFault& fault) {
    checked.faults.push_back({file, fault});
  };
  std::vector<std::string> paths;
  try {
    paths = ExpandPaths(name);
  } catch (const std::runtime_error& error) {
    add(name, {FaultKind::kFile, 0, "", error.what()});
  }
  for (const std::string& path : paths) {
    try {
      RowIndex index(format.fields.size());
      const MeasuredFile measured = MeasureFile({path}, format, {depth, UsableCores()}, index,
                                                [&](const DataFault& fault) { add(path, fault); });
      ++checked.num_files;
      checked.sums += measured.sums;
      AddSurvey(measured.files, checked.files);
      if (run != nullptr) RequireAsIndexed(path, index, *run, format.fields.size());
    } catch (const FaultError& error) {
      add(path, error.fault());
    }
  }
  if (checked.faults.empty() && checked.sums.rows == 0) {
    add(name, {FaultKind::kFile, 0, "", "expected at least one row, found none"});
  }
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
  const RowSums& sums = checked.sums;
  std::printf("%s%s\n", checked.name.c_str(),
              checked.num_files > 1 ? (": " + Counted(checked.num_files, "file")).c_str() : "");
  PrintLine("rows", std::to_string(sums.rows) + ", " + std::to_string(sums.without_files) +
                        " without " + file.WithArticle() + ", " + std::to_string(sums.bad) +
                        " bad");
  std::string files = std::to_string(checked.files.num_files);
  for (std::size_t i = 0; i < checked.files.formats.size(); ++i) {
    const std::string text = FormatText(static_cast<ImageFormat>(i), checked.files.formats[i]);
    if (!text.empty()) files += ", " + text;
  }
  PrintLine((file.word + "s").c_str(), files);
}

/// Prints the token counts of a list that a configuration names.
void PrintFit(const RowSums& sums, const SampleFormat& format) {
  PrintLine("tokens", "at most " + std::to_string(sums.most_tokens) + ", the context is " +
                          std::to_string(format.context) + "; " + Counted(sums.cut, "row") +
                          (sums.cut == 1 ? " is longer and loses its end"
                                         : " are longer and lose their end"));
}

/// Prints the epochs over the rows that can be trained on. Those of packs depend on the order of
/// training, which `train` knows.
void PrintEpochs(const Config& config, std::int64_t rows) {
  if (rows == 0 || config.data.packing) return;
  const std::int64_t steps = WithSteps(config, rows).run.steps;
  const auto samples = static_cast<double>(steps) * static_cast<double>(config.global_batch());
  PrintLine("epochs", Formatted("%.1f: ", samples / static_cast<double>(rows)) +
                          Counted(steps, "step") + " of " +
                          Counted(config.global_batch(), "sample"));
}

void PrintFaults(const Checked& checked) {
  for (const LocatedFault& each : checked.faults) {
    std::printf("%s\n", FaultLine(each.file, each.fault).c_str());
  }
}

/// Returns the exit code. Prints the next step if there are faults.
int ExitCodeOf(const std::vector<Checked>& sources) {
  std::int64_t count = 0;
  bool all_skippable = true;
  for (const Checked& source : sources) {
    for (const LocatedFault& each : source.faults) {
      ++count;
      all_skippable = all_skippable && each.fault.kind != FaultKind::kFile;
    }
  }
  if (count == 0) {
    std::printf("no faults\n");
    return kExitDone;
  }
  std::printf("%s: correct %s\n", Counted(count, "fault").c_str(),
              all_skippable ? "these rows and files, take the rows out of the list, or train "
                              "without them: data.on_error = \"skip\""
                            : "the files first; no row of a list that cannot be read is trained");
  return kExitFailed;
}

int CheckOneSource(const std::string& name, FileDepth depth) {
  const SampleFormat plain = PlainFormat();
  const Checked checked = CheckSource(name, plain, depth);
  PrintFaults(checked);
  PrintSummary(checked, plain);
  return ExitCodeOf({checked});
}

int CheckConfig(const ConfigArguments& arguments, FileDepth depth) {
  const Config config = LoadConfig(arguments.path, arguments.overrides).config;
  if (!config.data.has_train()) {
    std::printf("%s: synthetic modules read no data\n", arguments.path.c_str());
    return kExitDone;
  }
  const SampleFormat format = FormatOf(config);
  std::vector<std::string> names = config.data.train_paths();
  const std::size_t num_train = names.size();
  if (!config.data.held_out.empty()) names.push_back(config.data.held_out);
  const SetTerms run = TermsOf(config, format, kRunDepth);
  std::vector<Checked> sources;
  std::int64_t used = 0;  // training rows
  for (std::size_t i = 0; i < names.size(); ++i) {
    sources.push_back(CheckSource(names[i], format, depth, &run));
    PrintFaults(sources.back());
    if (i >= num_train) continue;
    const RowSums& sums = sources.back().sums;
    const auto& stated = config.data.sources;
    const OnError on_error =
        stated.empty() ? config.data.on_error : stated[i].on_error.value_or(config.data.on_error);
    used += sums.rows - sums.bad + (on_error == OnError::kSubstitute ? sums.replaceable : 0);
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    PrintSummary(sources[i], format);
    PrintFit(sources[i].sums, format);
    if (i + 1 == num_train) PrintEpochs(config, used);
  }
  return ExitCodeOf(sources);
}

}  // namespace

void AddDataCheck(CLI::App& data, Command& command) {
  auto* check = data.add_subcommand(
      "check",
      "Check every row and every image of a list, or of the lists that a configuration names, and\n"
      "print all faults, one a line, and a summary.\n"
      "Exit code: 0 no faults, 1 faults, 2 wrong arguments or configuration.");
  auto arguments = std::make_shared<DataCheckArguments>();
  check
      ->add_option("FILE", arguments->config.path,
                   "a list (*.json, *.jsonl), shards (*.tar, also as a quoted pattern), or a "
                   "configuration (*.toml)")
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
    return is_config ? CheckConfig(arguments->config, depth) : CheckOneSource(path, depth);
  });
}

}  // namespace troupe
