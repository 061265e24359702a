// Predicts the step time and the peak memory of the rows of arXiv 2605.27678 with Troupe's cost model.
//   bench_paper_tables FOLDER [--blind] [--summary] [--constants FILE]
// Prints id,mode,predicted_ms,measured_ms,predicted_gb,measured_gb. bench/README.md explains it.
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/paper_memory.hpp"
#include "bench/paper_rows.hpp"
#include "bench/paper_rules.hpp"
#include "bench/paper_summary.hpp"
#include "bench/paper_time.hpp"
#include "bench/program.hpp"
#include "bench/report.hpp"
#include "files/text_file.hpp"

namespace troupe::bench {
namespace {

constexpr double kMs = 1e3;

constexpr const char* kUsage =
    "usage: bench/paper_tables.sh BUILD_DIR FOLDER [--blind] [--summary] [--constants FILE]\n"
    "  FOLDER            has table_a2.csv to table_a5.csv and inferred_settings.csv, or some of "
    "them\n"
    "  --blind           ignores inferred_settings.csv\n"
    "  --summary         prints errors to standard error\n"
    "  --constants FILE  replaces constants of the model: lines \"NAME VALUE\"\n";

struct Arguments {
  std::string folder;
  std::string constants;
  bool blind = false;
  bool summary = false;
};

/// Nothing if they are wrong.
std::optional<Arguments> Parse(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--blind") {
      arguments.blind = true;
    } else if (word == "--summary") {
      arguments.summary = true;
    } else if (word == "--constants" && i + 1 < words.size()) {
      arguments.constants = words[++i];
    } else if (word.starts_with("--") || !arguments.folder.empty()) {
      return std::nullopt;
    } else {
      arguments.folder = word;
    }
  }
  if (arguments.folder.empty()) return std::nullopt;
  return arguments;
}

PaperConstants ReadConstants(const std::string& path) {
  PaperConstants constants;
  if (path.empty()) return constants;
  std::istringstream words(ReadWholeFile(path));
  for (std::string name; words >> name;) {
    bool known = false;
    double value = 0.0;
    if (!(words >> value)) throw std::runtime_error(path + ": " + name + ": expected a number");
    for (const NamedConstant& constant : ConstantNames()) {
      if (constant.name != name) continue;
      constants.*constant.value = value;
      known = true;
    }
    if (!known) throw std::runtime_error(path + ": unknown constant \"" + name + "\"");
  }
  return constants;
}

std::string Text(const std::optional<double>& value, int decimals) {
  return value ? Fixed(*value, decimals) : std::string();
}

void Print(const Predicted& row) {
  std::cout << row.id << ',' << ToString(row.mode) << ',' << Fixed(row.ms, 1) << ','
            << Text(row.measured_ms, 1) << ',' << Fixed(row.gb, 1) << ','
            << Text(row.measured_gb, 1) << '\n';
}

Predicted Predict(const PaperModel& model, const PaperJob& job, const std::vector<PaperJob>& row) {
  return {.id = job.id,
          .mode = job.mode,
          .ms = kMs * model.TimeOf(job).total(),
          .gb = MemoryGb(job, row, model.constants().reserve_gb),
          .measured_ms = job.measured_ms,
          .measured_gb = job.measured_gb};
}

/// Prints the jobs of a row, each with its prediction. One that is impossible goes to standard error.
void PrintRow(const PaperModel& model, PaperRow& row, std::vector<Predicted>& predicted) {
  try {
    ChooseSettings(model, row.jobs);
    for (const PaperJob& job : row.jobs) {
      Print(predicted.emplace_back(Predict(model, job, row.jobs)));
    }
  } catch (const std::exception& error) {
    std::cerr << row.id << ": " << error.what() << "; it is left out\n";
    row.jobs.clear();
  }
}

void PrintContest(const ContestResult& contest) {
  if (contest.jobs.empty()) {
    std::cerr << contest.id
              << ": expected its H among the rows of the other tables; it is left out\n";
  }
  for (const auto& [mode, job] : contest.jobs) {
    Print({.id = contest.id,
           .mode = mode,
           .ms = kMs * contest.predicted_s.at(mode),
           .gb = contest.predicted_gb.at(mode),
           .measured_ms = job.measured_ms,
           .measured_gb = job.measured_gb});
  }
}

int Run(const Arguments& arguments) {
  const PaperModel model(ReadConstants(arguments.constants));
  PaperTables tables = ReadPaperTables(arguments.folder, arguments.blind);
  std::cout << "id,mode,predicted_ms,measured_ms,predicted_gb,measured_gb\n";
  std::vector<Predicted> rows;
  for (PaperRow& row : tables.rows) PrintRow(model, row, rows);
  const std::vector<ContestResult> contests = Decide(model, tables);
  for (const ContestResult& contest : contests) PrintContest(contest);
  if (arguments.summary) WriteSummary(rows, contests, std::cerr);
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe::bench;
  const auto arguments = Parse({argv + 1, argv + argc});
  if (!arguments) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  return ExitCodeOf("bench_paper_tables", [&arguments] { return Run(*arguments); });
}
