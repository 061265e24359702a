#include "app/run_metrics.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "app/run_directory.hpp"

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

}  // namespace troupe
