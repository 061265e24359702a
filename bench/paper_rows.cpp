#include "bench/paper_rows.hpp"

#include <cmath>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "bench/paper_csv.hpp"

namespace troupe::bench {
namespace {

/// By billions of parameters. The paper names only these; the shapes are assumed.
const std::map<double, LanguageSize> kLanguageSizes = {
    {7, {32, 4096, 11008, 32, 32, 32000}},    {14, {48, 5120, 13824, 40, 8, 152064}},
    {32, {64, 5120, 27648, 40, 8, 152064}},   {70, {80, 8192, 28672, 64, 8, 128256}},
    {120, {96, 10240, 33280, 80, 8, 131072}},
};
const std::map<double, EncoderSize> kEncoderSizes = {
    {1, {40, 1408}}, {3, {60, 2048}}, {6, {48, 3200}}, {7.2, {36, 4096}}, {12, {38, 5120}},
};

/// The settings by id and mode.
using Settings = std::map<std::pair<std::string, std::string>, CsvRow>;

template <class Size>
Size SizeOf(const std::map<double, Size>& sizes, const CsvRow& row, const std::string& column) {
  const auto found = sizes.find(row.Number(column));
  if (found != sizes.end()) return found->second;
  std::string known;
  for (const auto& [billions, size] : sizes) {
    std::ostringstream number;
    number << billions;
    known += (known.empty() ? "" : ", ") + number.str();
  }
  throw std::runtime_error(row.place() + ": " + column + ": expected one of " + known + ", got \"" +
                           row.Text(column) + "\"");
}

Layout LayoutOf(const CsvRow& row, const std::string& prefix) {
  return {.tp = row.Count(prefix + "_tp"),
          .cp = row.Count(prefix + "_cp"),
          .pp = row.Count(prefix + "_pp"),
          .dp = row.Count(prefix + "_dp")};
}

std::optional<double> NumberIfAny(const CsvRow& row, const std::string& column) {
  return row.Has(column) ? std::optional(row.Number(column)) : std::nullopt;
}

/// The sizes that all modes of a row share.
PaperJob WorkloadOf(const CsvRow& row) {
  constexpr double kPercent = 100.0;
  PaperJob job{.id = row.Text("id"),
               .encoder_billions = row.Number("encoder_params"),
               .language_billions = row.Number("llm_params"),
               .encoder_size = SizeOf(kEncoderSizes, row, "encoder_params"),
               .language_size = SizeOf(kLanguageSizes, row, "llm_params")};
  job.tokens = row.Count("seq_len");
  job.vision_share = row.Number("vision_pct") / kPercent;
  job.samples = row.Count("gbs");
  job.prints_microbatches = row.Has("nmb");
  return job;
}

std::vector<std::int64_t> SplitOf(const CsvRow& row, const PaperJob& job) {
  const std::string text = row.Text("llm_layer_split");
  std::vector<std::int64_t> split;
  std::int64_t sum = 0;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, '-');) {
    std::int64_t layers = 0;
    std::istringstream(part) >> layers;
    split.push_back(layers);
    sum += layers;
  }
  if (text.empty() ||
      (split.size() == static_cast<std::size_t>(job.language.pp) &&
       *std::min_element(split.begin(), split.end()) > 0 && sum == job.language_size.layers)) {
    return split;
  }
  throw std::runtime_error(row.place() + ": llm_layer_split: expected " +
                           std::to_string(job.language.pp) + " numbers that add up to " +
                           std::to_string(job.language_size.layers) + ", got \"" + text + "\"");
}

void ReadSoftware(const CsvRow& row, PaperJob& job) {
  static const std::map<std::string, std::optional<Stack>> kStacks = {
      {"fast", Stack::kFast}, {"mid", Stack::kMid}, {"slow", Stack::kSlow}, {"", std::nullopt}};
  static const std::map<std::string, std::optional<Regime>> kRegimes = {
      {"A", Regime::kA}, {"B", Regime::kB}, {"", std::nullopt}};
  const auto find = [&](const auto& words, const std::string& column, const char* expected) {
    const auto found = words.find(row.Text(column));
    if (found != words.end()) return found->second;
    throw std::runtime_error(row.place() + ": " + column + ": expected " + expected + ", got \"" +
                             row.Text(column) + "\"");
  };
  job.stack = find(kStacks, "stack", "fast, mid or slow");
  job.regime = find(kRegimes, "encoder_regime", "A or B");
  if (!job.measured_gb) job.measured_gb = NumberIfAny(row, "peak_mem_gb");
}

struct TableKind {
  std::string file;
  std::string other;  ///< of the mode besides H, as columns name it
  Mode mode = Mode::kColocated;
  std::string time;  ///< what columns of times begin with
};
const std::vector<TableKind> kTables = {{"table_a2.csv", "c", Mode::kColocated, "step"},
                                        {"table_a3.csv", "c", Mode::kColocated, "fb"},
                                        {"table_a4.csv", "nc", Mode::kSeparate, "step"}};

PaperJob JobOf(const CsvRow& row, const TableKind& table, Mode mode, const Settings& settings) {
  const std::string name = mode == Mode::kHomogeneous ? "h" : table.other;
  PaperJob job = WorkloadOf(row);
  job.mode = mode;
  job.encoder = LayoutOf(row, name + "_enc");
  job.language = LayoutOf(row, name + "_llm");
  job.devices = row.Has("gpus_" + name) ? row.Count("gpus_" + name) : 0;
  job.passes_only = table.time == "fb";
  if (mode == Mode::kColocated && row.Has("enc_opt_instances")) {
    job.optimizer_instances = row.Count("enc_opt_instances");
  }
  job.measured_ms = NumberIfAny(row, table.time + "_" + name + "_ms");
  job.measured_gb = NumberIfAny(row, "peak_mem_" + name + "_gb");
  const auto given = settings.find({job.id, ToString(mode)});
  if (given == settings.end()) return job;
  try {
    ReadSoftware(given->second, job);
    job.split = SplitOf(given->second, job);
  } catch (const std::runtime_error& error) {
    std::cerr << error.what() << "; the rest follows the blind rules\n";
  }
  return job;
}

Contest ContestOf(const CsvRow& row, const Settings& settings) {
  Contest contest{.id = row.Text("id"), .workload = WorkloadOf(row)};
  PaperJob& job = contest.workload;
  job.mode = Mode::kSeparate;
  job.encoder = LayoutOf(row, "nc_enc");
  contest.devices = {{Mode::kHomogeneous, row.Count("gpus_h")},
                     {Mode::kSeparate, row.Count("gpus_nc")}};
  contest.devices[Mode::kColocated] =
      row.Has("gpus_c") ? row.Count("gpus_c") : contest.devices[Mode::kHomogeneous];
  contest.colocated_is_homogeneous = row.Text("c_equals_h") == "1";
  contest.separate_gain = NumberIfAny(row, "nc_gain_tokens_pct");
  contest.best = row.Text("best");
  job.devices = contest.devices[Mode::kSeparate];
  const auto given = settings.find({job.id, ToString(Mode::kSeparate)});
  if (given != settings.end()) ReadSoftware(given->second, job);
  return contest;
}

Settings ReadSettingsTable(const std::string& folder) {
  Settings settings;
  const std::string path = folder + "/inferred_settings.csv";
  if (!std::filesystem::exists(path)) return settings;
  for (const CsvRow& row : ReadCsv(path, {"id", "mode"})) {
    settings.emplace(std::pair{row.Text("id"), row.Text("mode")}, row);
  }
  return settings;
}

/// Runs `read`; what it throws goes to standard error.
template <class Read>
void Attempt(const std::string& what, Read read) {
  try {
    read();
  } catch (const std::runtime_error& error) {
    std::cerr << error.what() << "; " << what << " is left out\n";
  }
}

}  // namespace

std::string ToString(Mode mode) {
  return mode == Mode::kHomogeneous ? "H" : mode == Mode::kColocated ? "C" : "NC";
}

double LanguageSize::layer_parameters() const {
  const auto width = static_cast<double>(hidden);
  return 2.0 * width * width + 2.0 * width * key_width() +
         3.0 * width * static_cast<double>(mlp_hidden);
}

PaperTables ReadPaperTables(const std::string& folder, bool blind) {
  const std::vector<std::string> required = {"id",      "encoder_params", "llm_params",
                                             "seq_len", "vision_pct",     "gbs"};
  const Settings settings = blind ? Settings() : ReadSettingsTable(folder);
  PaperTables tables;
  bool any = false;
  for (const TableKind& table : kTables) {
    const std::string path = folder + "/" + table.file;
    if (!std::filesystem::exists(path)) continue;
    any = true;
    for (const CsvRow& row : ReadCsv(path, required)) {
      PaperRow& read = tables.rows.emplace_back(PaperRow{row.Text("id"), {}});
      for (const Mode mode : {Mode::kHomogeneous, table.mode}) {
        Attempt(read.id + " " + ToString(mode),
                [&] { read.jobs.push_back(JobOf(row, table, mode, settings)); });
      }
    }
  }
  const std::string path = folder + "/table_a5.csv";
  if (std::filesystem::exists(path)) {
    any = true;
    for (const CsvRow& row : ReadCsv(path, required)) {
      Attempt(row.Text("id"), [&] { tables.contests.push_back(ContestOf(row, settings)); });
    }
  }
  if (any) return tables;
  throw std::runtime_error(folder +
                           ": expected table_a2.csv, table_a3.csv, table_a4.csv or "
                           "table_a5.csv, found none of them");
}

}  // namespace troupe::bench
