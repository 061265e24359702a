#include "cli/layouts/layout_table.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/plan_report.hpp"
#include "cli/schedule/bench_table.hpp"
#include "layout/text.hpp"
#include "trace/analyze/median.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

using Entries = std::vector<const LayoutEntry*>;

double PredictedMs(const LayoutEntry& entry) { return entry.plan.cost.step_s * 1e3; }

/// A layout that failed in a later turn has samples, which do not count.
bool Ran(const LayoutEntry& entry) { return entry.failure.empty() && !entry.step_ms.empty(); }

/// Those that ran, as the measured steps order them.
Entries Fastest(const std::vector<LayoutEntry>& entries) {
  Entries ran;
  for (const LayoutEntry& entry : entries) {
    if (Ran(entry)) ran.push_back(&entry);
  }
  std::ranges::stable_sort(ran, {},
                           [](const LayoutEntry* entry) { return Median(entry->step_ms); });
  return ran;
}

std::string NameOf(const LayoutEntry& entry) {
  return entry.number == 0 ? NumberOf(entry) : "plan " + NumberOf(entry);
}

/// What the prediction got wrong: pairs that it had in the other order.
struct WrongPairs {
  int clear = 0;
  int within_noise = 0;
};

WrongPairs WrongPairsOf(const Entries& fastest) {
  WrongPairs wrong;
  for (std::size_t i = 0; i < fastest.size(); ++i) {
    for (std::size_t j = i + 1; j < fastest.size(); ++j) {
      if (PredictedMs(*fastest[i]) <= PredictedMs(*fastest[j])) continue;
      const bool noise =
          DifferenceOf(fastest[i]->step_ms, fastest[j]->step_ms) == Difference::kNoise;
      ++(noise ? wrong.within_noise : wrong.clear);
    }
  }
  return wrong;
}

std::string OrderVerdict(Entries fastest) {
  const WrongPairs wrong = WrongPairsOf(fastest);
  if (wrong.clear == 0) {
    return std::string("the prediction had the same order") +
           (wrong.within_noise > 0 ? " but for differences within the noise" : "");
  }
  std::ranges::stable_sort(fastest, {},
                           [](const LayoutEntry* entry) { return PredictedMs(*entry); });
  return "the prediction had another order: " +
         Listed(fastest, ", ", [](const LayoutEntry* entry) { return NumberOf(*entry); });
}

std::string MemoryText(const LayoutEntry& entry) {
  return entry.memory_bytes > 0 ? Bytes(static_cast<std::uint64_t>(entry.memory_bytes)) : "-";
}

}  // namespace

std::string NumberOf(const LayoutEntry& entry) {
  return entry.number == 0 ? "now" : std::to_string(entry.number);
}

std::string MeasuredTableOf(const std::vector<LayoutEntry>& entries) {
  Table table{{"#", "step ms", "predicted", "samples/s", "ranks", "memory", "estimated"}, {}};
  const auto layouts = LayoutColumns(entries.front().plan.config);
  table.columns.insert(table.columns.end(), layouts.begin(), layouts.end());
  for (const LayoutEntry& entry : entries) {
    const Config& config = entry.plan.config;
    const double rate =
        Ran(entry) ? 1e3 * static_cast<double>(config.global_batch()) / Median(entry.step_ms) : 0.0;
    std::vector<Cell> row = {NumberOf(entry),
                             Cell::Number(Ran(entry) ? MedianText(entry.step_ms) : "-"),
                             Cell::Number(MsText(entry.plan.cost.step_s)),
                             Cell::Number(RateText(rate)),
                             entry.plan.job.ranks,
                             Cell::Number(Ran(entry) ? MemoryText(entry) : "-"),
                             Cell::Number(Bytes(entry.estimated_bytes))};
    for (const std::string& cell : LayoutCells(config)) row.emplace_back(cell);
    table.rows.push_back(std::move(row));
  }
  return ToText(table);
}

bool InPredictedOrder(const std::vector<LayoutEntry>& entries) {
  return WrongPairsOf(Fastest(entries)).clear == 0;
}

std::string VerdictOf(const std::vector<LayoutEntry>& entries) {
  const Entries fastest = Fastest(entries);
  if (fastest.size() < 2) return "";
  const LayoutEntry& first = *fastest.front();
  const auto now = std::ranges::find(fastest, std::size_t{0}, &LayoutEntry::number);
  const LayoutEntry& other = now == fastest.end() || *now == &first ? *fastest[1] : **now;
  const double gain = 1.0 - Median(first.step_ms) / Median(other.step_ms);
  const Difference difference = DifferenceOf(first.step_ms, other.step_ms);
  std::string text = NameOf(first) + " was fastest: ";
  if (difference == Difference::kNoise) {
    text += "no difference from " + NameOf(other) + " beyond the noise";
  } else {
    text += Percent(gain) + " less time than " + NameOf(other);
    if (difference == Difference::kUnknown) text += " (which may be noise)";
  }
  return text + "; " + OrderVerdict(fastest) + "\n";
}

std::string FailuresText(const std::vector<LayoutEntry>& entries) {
  std::string text;
  for (const LayoutEntry& entry : entries) {
    if (!entry.failure.empty()) text += NameOf(entry) + " failed: " + entry.failure + "\n";
  }
  return text;
}

nlohmann::json JsonOf(const LayoutEntry& entry, const Config& config) {
  nlohmann::json json = {{"plan", entry.number},
                         {"ranks", entry.plan.job.ranks},
                         {"global_batch", entry.plan.config.global_batch()},
                         {"predicted_step_ms", PredictedMs(entry)},
                         {"estimated_bytes", entry.estimated_bytes},
                         {"measured_step_ms", entry.step_ms},
                         {"measured_bytes", entry.memory_bytes},
                         {"settings", nlohmann::json::array()}};
  if (entry.number > 0) json["settings"] = SettingsOf(config, entry.plan.job);
  if (!entry.failure.empty()) json["failure"] = entry.failure;
  return json;
}

}  // namespace troupe
