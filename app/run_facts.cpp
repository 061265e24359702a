#include "app/run_facts.hpp"

#include <optional>
#include <stdexcept>

#include "app/run_directory.hpp"
#include "configs/loader.hpp"
#include "configs/resolved.hpp"
#include "layout/grid.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

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
      const std::string name = table.dotted.empty() ? key.name : table.dotted + "." + key.name;
      if (IsName(name)) continue;
      if (values.emplace(name, key.value).second) order.push_back(name);
    }
  }
  return values;
}

}  // namespace

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
