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
#include "layout/grid.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

/// Whether the member of a line is a value.
bool IsValue(const std::string& key) { return key != "kind" && key != "step"; }

void AddLine(const nlohmann::json& line, RunMetrics& metrics) {
  const auto kind = line.find("kind");
  const auto step = line.find("step");
  if (kind == line.end() || step == line.end() || !step->is_number_integer()) return;
  const bool train = *kind == "step";
  if (!train && *kind != "held_out") return;
  for (const auto& [key, value] : line.items()) {
    if (!IsValue(key) || !value.is_number()) continue;
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

void AddLast(const RunMetrics& metrics, const std::string& key, const char* format,
             const std::string& name, std::map<std::string, std::string>& facts) {
  const MetricSeries* const series = FindSeries(metrics, key);
  if (series == nullptr) return;
  facts[name] = Formatted(format, series->back().second) + " after step " +
                std::to_string(series->back().first);
}

/// Keys that name the run itself.
bool IsName(const std::string& key) { return key == "run.name" || key == "run.dir"; }

std::map<std::string, std::string> KeysOf(const Config& config, std::vector<std::string>& order) {
  std::map<std::string, std::string> values;
  for (const ResolvedTable& table : ResolvedTables(config)) {
    for (const ResolvedKey& key : table.keys) {
      if (IsName(key.dotted)) continue;
      if (values.emplace(key.dotted, key.value).second) order.push_back(key.dotted);
    }
  }
  return values;
}

}  // namespace

RunMetrics ReadMetrics(const std::string& run_directory) {
  RunMetrics metrics;
  const std::string path = run_directory + "/" + kMetricsFile;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return metrics;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
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

const MetricSeries* FindSeries(const RunMetrics& metrics, const std::string& key) {
  const auto found = metrics.find(key);
  return found == metrics.end() || found->second.empty() ? nullptr : &found->second;
}

std::optional<CommonValue> LastCommon(const RunMetrics& before, const RunMetrics& after,
                                      const std::string& key) {
  const MetricSeries* const a = FindSeries(before, key);
  const MetricSeries* const b = FindSeries(after, key);
  if (a == nullptr || b == nullptr) return std::nullopt;
  for (auto mine = a->rbegin(); mine != a->rend(); ++mine) {
    const auto same = std::ranges::find(*b, mine->first, &MetricSeries::value_type::first);
    if (same != b->end()) return CommonValue{mine->first, mine->second, same->second};
  }
  return std::nullopt;
}

double MedianOf(const RunMetrics& metrics, const std::string& key) {
  const MetricSeries* const series = FindSeries(metrics, key);
  if (series == nullptr) return 0.0;
  std::vector<double> values;
  for (const auto& [step, value] : *series) values.push_back(value);
  if (values.size() > 1) values.erase(values.begin());
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
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
  const auto read = [](const std::string& run) {
    const auto config = ConfigOf(run);
    if (!config) {
      throw std::invalid_argument(ResolvedFile(run) + ": expected a configuration of this version");
    }
    return *config;
  };
  std::vector<std::string> order;
  const auto values_before = KeysOf(read(before), order);
  const std::size_t num_before = order.size();
  const auto values_after = KeysOf(read(after), order);
  std::vector<KeyDifference> differences;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto a = values_before.find(order[i]);
    const auto b = values_after.find(order[i]);
    if (i >= num_before && a != values_before.end()) continue;  // has been compared
    KeyDifference difference{order[i], a == values_before.end() ? "" : a->second,
                             b == values_after.end() ? "" : b->second};
    if (difference.before != difference.after) differences.push_back(std::move(difference));
  }
  return differences;
}

}  // namespace troupe
