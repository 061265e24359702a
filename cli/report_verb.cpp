#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "app/report.hpp"
#include "app/run_directory.hpp"
#include "app/run_facts.hpp"
#include "cli/commands.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;
  std::string csv;
};

int ReportRuns(const ReportArguments& arguments) {
  std::string path = arguments.out;
  if (path.empty()) {
    path = arguments.runs.size() == 1 ? arguments.runs.front() + "/" + kReportFile : kReportFile;
  }
  try {
    for (const std::string& run : arguments.runs) {
      std::error_code unknown;
      if (std::filesystem::exists(ResolvedFile(run), unknown)) continue;
      throw std::invalid_argument(run + ": expected a run directory, found none");
    }
    const std::string page = ReportPage(arguments.runs);
    if (!arguments.csv.empty()) {
      WritePageFile(arguments.csv, SeriesCsv(ReadMetrics(arguments.runs.front())));
      std::cout << arguments.csv << ": the values of " << arguments.runs.front() << '\n';
    }
    WritePageFile(path, page);
    std::cout << path << ": " << arguments.runs.size()
              << (arguments.runs.size() == 1 ? " run, " : " runs, ")
              << Bytes(static_cast<std::int64_t>(page.size())) << '\n';
  } catch (const std::invalid_argument& e) {
    std::cerr << "troupe report: " << e.what() << '\n';
    return kExitBadInput;
  }
  return kExitDone;
}

}  // namespace

void AddReport(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "report",
      "Write one HTML page about a run, or several to compare: training and held-out loss,\n"
      "learning rate, gradient norm and speed by step, drawn over each other, and the\n"
      "timeline of the last step of each. The page needs no other file and no network.\n"
      "Exit code: 0 done, 1 a file cannot be read or written, 2 wrong arguments.");
  auto arguments = std::make_shared<ReportArguments>();
  verb->add_option("RUN", arguments->runs,
                   "run directories; runs/latest, or NAME for the newest runs/NAME-TIME")
      ->required()
      ->transform(FindRun);
  verb->add_option("--out", arguments->out,
                   "file to write (default: RUN/report.html; of several runs report.html here)")
      ->type_name("FILE");
  verb->add_option("--csv", arguments->csv,
                   "write the values of metrics.jsonl of the (first) run to this file, too, a\n"
                   "row per step")
      ->type_name("FILE");
  SetCommand(*verb, command, [arguments] { return ReportRuns(*arguments); });
}

}  // namespace troupe
