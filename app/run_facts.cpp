#include "app/run_facts.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>

#include "app/run_directory.hpp"
#include "configs/loader.hpp"
#include "configs/schema.hpp"
#include "files/strict_json.hpp"
#include "layout/grid.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

void AddLine(const nlohmann::json& line, RunMetrics& metrics) {
  const auto kind = line.find("kind");
  const auto step = line.find("step");
  if (kind == line.end() || step == line.end() || !step->is_number_integer()) return;
  const bool train = *kind == "step";
  if (!train && *kind != "held_out") return;
  for (const auto& [key, value] : line.items()) {
    if (key == "step" || !value.is_number()) continue;
    metrics[train ? key : "held_out_" + key].emplace_back(step->get<std::int64_t>(),
                                                          value.get<double>());
  }
}

/// Returns nothing if the file is missing or of another version.
std::optional<Config> ConfigOf(const std::string& run_directory) {
  try {
    return LoadConfig(ResolvedFile(run_directory), {}).config;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// Returns an empty series if the run has none.
MetricSeries SeriesOf(const RunMetrics& metrics, const std::string& key) {
  const auto found = metrics.find(key);
  return found == metrics.end() ? MetricSeries() : found->second;
}

void AddLast(const RunMetrics& metrics, const std::string& key, const char* format,
             const std::string& name, std::map<std::string, std::string>& facts) {
  const MetricSeries series = SeriesOf(metrics, key);
  if (series.empty()) return;
  const auto& [step, value] = series.back();
  facts[name] = Formatted(format, value) + " after step " + std::to_string(step);
}

/// The keys of a run with their values, in order, without those that name the run itself.
std::vector<std::pair<std::string, std::string>> KeysOf(const std::string& run) {
  const auto config = ConfigOf(run);
  if (!config) {
    throw std::invalid_argument(ResolvedFile(run) + ": expected a configuration of this version");
  }
  std::vector<std::pair<std::string, std::string>> keys;
  for (const ResolvedTable& table : ResolvedTables(*config)) {
    for (const ResolvedKey& key : table.keys) {
      if (key.dotted != "run.name" && key.dotted != "run.dir")
        keys.emplace_back(key.dotted, key.value);
    }
  }
  return keys;
}

}  // namespace

RunMetrics ReadMetrics(const std::string& run_directory) {
  RunMetrics metrics;
  const std::string path = run_directory + "/" + kMetricsFile;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return metrics;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto json = ParseOwnJson(line);
    if (json.is_object()) AddLine(json, metrics);
  }
  return metrics;
}

std::string SeriesJson(const RunMetrics& metrics) { return nlohmann::json(metrics).dump(); }

std::string SeriesCsv(const RunMetrics& metrics) {
  std::set<std::int64_t> steps;
  std::string text = "step";
  for (const auto& [key, series] : metrics) {
    text += "," + key;
    for (const auto& [step, value] : series) steps.insert(step);
  }
  text += '\n';
  for (const std::int64_t step : steps) {
    text += std::to_string(step);
    for (const auto& [key, series] : metrics) {
      const auto at = std::ranges::find(series, step, &MetricSeries::value_type::first);
      text += ",";
      if (at != series.end()) text += nlohmann::json(at->second).dump();
    }
    text += '\n';
  }
  return text;
}

std::optional<CommonValue> LastCommon(const RunMetrics& before, const RunMetrics& after,
                                      const std::string& key) {
  const MetricSeries a = SeriesOf(before, key);
  const MetricSeries b = SeriesOf(after, key);
  for (auto mine = a.rbegin(); mine != a.rend(); ++mine) {
    const auto same = std::ranges::find(b, mine->first, &MetricSeries::value_type::first);
    if (same != b.end()) return CommonValue{mine->first, mine->second, same->second};
  }
  return std::nullopt;
}

double MedianOf(const RunMetrics& metrics, const std::string& key) {
  MetricSeries series = SeriesOf(metrics, key);
  if (series.empty()) return 0.0;
  if (series.size() > 1) series.erase(series.begin());
  const auto middle = series.begin() + std::ssize(series) / 2;
  std::ranges::nth_element(series, middle, {}, &MetricSeries::value_type::second);
  return middle->second;
}

RunRates RatesOf(const std::string& run_directory, const RunMetrics& metrics) {
  RunRates rates;
  rates.tokens_per_second = MedianOf(metrics, "tokens_per_second");
  rates.samples_per_second = MedianOf(metrics, "samples_per_second");
  const auto config = ConfigOf(run_directory);
  if (!config) return rates;
  rates.ranks = config->cluster.ranks;
  // Older runs do not record it.
  const double seconds = MedianOf(metrics, "seconds");
  if (rates.samples_per_second == 0.0 && seconds > 0.0) {
    rates.samples_per_second = static_cast<double>(config->global_batch()) / seconds;
  }
  return rates;
}

std::map<std::string, std::string> FactsOf(const std::string& run_directory,
                                           const RunMetrics& metrics) {
  std::map<std::string, std::string> facts;
  if (const auto config = ConfigOf(run_directory)) {
    facts["ranks"] = std::to_string(config->cluster.ranks);
    facts["global batch"] = std::to_string(config->global_batch());
    for (const ModuleConfig& module : config->modules) {
      facts["layout of " + module.name] =
          module.inline_in ? "inline in " + *module.inline_in : ToString(module.layout);
    }
  }
  const RunRates rates = RatesOf(run_directory, metrics);
  if (rates.tokens_per_second > 0) {
    facts["tokens per second, median"] = Formatted("%.0f", rates.tokens_per_second);
  }
  if (rates.samples_per_second > 0) {
    facts["samples per second, median"] = Formatted("%.1f", rates.samples_per_second);
  }
  AddLast(metrics, "loss", "%.4f", "loss", facts);
  AddLast(metrics, "held_out_loss", "%.4f", "loss, held out", facts);
  return facts;
}

std::vector<KeyDifference> DifferencesOf(const std::string& before, const std::string& after) {
  std::vector<KeyDifference> keys;
  for (const auto& [key, value] : KeysOf(before)) keys.push_back({key, value, ""});
  for (const auto& [key, value] : KeysOf(after)) {
    const auto known = std::ranges::find(keys, key, &KeyDifference::key);
    if (known == keys.end()) {
      keys.push_back({key, "", value});
    } else {
      known->after = value;
    }
  }
  std::erase_if(keys, [](const KeyDifference& key) { return key.before == key.after; });
  return keys;
}

}  // namespace troupe
