#include "cli/schedule/bench_table.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "layout/text.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

/// Share of `base` that `step` saves; 0 if steps take no time, as with --scale M=0.
double GainOver(double base, double step) { return base == step ? 0.0 : 1.0 - step / base; }

std::string StepText(const BenchEntry& entry) {
  if (entry.step_ms.empty()) return Formatted("%.2f", entry.simulated.step_ms);
  const Interval95 step = MedianOf(entry.step_ms);
  const std::string median = Formatted("%.2f", step.median);
  if (!step.bounds) return median;
  return median + " [" + Formatted("%.2f", step.bounds->low) + ", " +
         Formatted("%.2f", step.bounds->high) + "]";
}

std::string BubbleText(const BenchEntry& entry) {
  const auto ideal = IdealBubble(entry.candidate);
  return Percent(entry.bubble()) + " / " + (ideal ? Percent(*ideal) : "-");
}

std::string RateText(const BenchEntry& entry) {
  const double rate = entry.samples_per_second();
  if (rate == 0.0) return "-";
  return Formatted(rate < 100.0 ? "%.2f" : "%.0f", rate);
}

std::string VirtualText(const BenchEntry& entry) {
  const double step_ms = entry.virtually->step_ms;
  return Formatted("%.3f", step_ms) + " (" +
         Formatted("%+.3f%%", 0.0 - 100.0 * GainOver(entry.simulated.step_ms, step_ms)) + ")";
}

}  // namespace

std::string FirstOf(const std::vector<std::int64_t>& numbers, std::size_t most, const char* more) {
  std::vector<std::string> words;
  for (const std::int64_t number : numbers) {
    if (words.size() < most) words.push_back(std::to_string(number));
  }
  return Listed(words, " ") + (numbers.size() > most ? more : "");
}

std::string Verdict(const BenchEntry& entry, const BenchEntry& baseline) {
  if (&entry == &baseline) return "baseline";
  const double gain = GainOver(baseline.step(), entry.step());
  const std::string bubbles =
      "the bubble is " + Percent(entry.bubble()) + " instead of " + Percent(baseline.bubble());
  const std::string& other = baseline.candidate.kind;
  if (std::abs(gain) < 0.0005) return "as fast as " + other;
  std::string caution;
  if (!entry.step_ms.empty() && !baseline.step_ms.empty()) {
    const Interval95 own = MedianOf(entry.step_ms);
    const Interval95 its = MedianOf(baseline.step_ms);
    if (!own.bounds || !its.bounds) {
      caution = " (which may be noise)";
    } else if (own.bounds->low <= its.bounds->high && its.bounds->low <= own.bounds->high) {
      return "no difference from " + other + " beyond the noise";
    }
  }
  const std::string text =
      Percent(std::abs(gain)) + (gain > 0 ? " faster than " : " slower than ") + other + caution;
  // The bubble is given as the reason only if it explains the difference.
  const bool explained = (entry.bubble() < baseline.bubble()) == (gain > 0);
  return explained ? text + ": " + bubbles : text + ", though " + bubbles;
}

std::string MeasuredTitle(int repetitions) {
  const std::string text = "measured, median of " + std::to_string(repetitions);
  if (repetitions >= kFewestForInterval) return text + " with its 95% interval";
  return text + "; an interval needs at least " + std::to_string(kFewestForInterval) +
         " repetitions";
}

std::string TextOf(const std::vector<BenchEntry>& entries) {
  const auto any = [&](auto has) { return std::ranges::any_of(entries, has); };
  const bool measured = any([](const BenchEntry& entry) { return !entry.errors.empty(); });
  const bool virtually = any([](const BenchEntry& entry) { return entry.virtually.has_value(); });
  std::vector<std::vector<std::string>> rows;
  rows.push_back({"kind", "mb", "step ms", "samples/s", "bubble / ideal", "peak by stage"});
  if (measured) rows.back().push_back("sim error");
  if (virtually) rows.back().push_back("virtual step ms");
  rows.back().push_back("verdict");
  const BenchEntry* baseline = nullptr;
  for (const BenchEntry& entry : entries) {
    const std::int64_t microbatches = entry.candidate.microbatches();
    const bool same = baseline != nullptr && baseline->candidate.microbatches() == microbatches;
    if (!same) baseline = &entry;
    auto& row = rows.emplace_back();
    row = {entry.candidate.kind, std::to_string(microbatches),
           StepText(entry),      RateText(entry),
           BubbleText(entry),    FirstOf(entry.simulated.peak_activations, 12, " ..")};
    if (measured) row.push_back(Formatted("%+.1f%%", 100.0 * MedianOf(entry.errors).median));
    if (virtually) row.push_back(VirtualText(entry));
    row.push_back(Verdict(entry, *baseline));
  }
  return Columns(rows);
}

std::string BatchesText(const std::vector<BenchEntry>& entries) {
  std::map<std::int64_t, std::int64_t> batches;  // by microbatches
  std::set<std::int64_t> different;
  for (const BenchEntry& entry : entries) {
    batches[entry.candidate.microbatches()] = entry.candidate.global_batch();
    different.insert(entry.candidate.global_batch());
  }
  if (different.size() < 2) return "";
  std::string text = "global batches differ: ";
  for (const auto& [microbatches, batch] : batches) {
    const bool first = microbatches == batches.begin()->first;
    text += (first ? "" : ", ") + std::to_string(batch) + (first ? " samples with " : " with ") +
            std::to_string(microbatches) + (first ? " microbatches" : "");
  }
  return text + "; compare samples/s, not step times\n";
}

nlohmann::json JsonOf(const BenchEntry& entry) {
  nlohmann::json json = {{"kind", entry.candidate.kind},
                         {"microbatches", entry.candidate.microbatches()},
                         {"global_batch", entry.candidate.global_batch()},
                         {"samples_per_second", entry.samples_per_second()},
                         {"simulated_step_ms", entry.simulated.step_ms},
                         {"simulated_bubble", entry.simulated.bubble},
                         {"peak_activations", entry.simulated.peak_activations},
                         {"measured_step_ms", entry.step_ms},
                         {"measured_bubble", entry.bubbles},
                         {"simulation_error", entry.errors}};
  if (const auto ideal = IdealBubble(entry.candidate)) json["ideal_bubble"] = *ideal;
  if (entry.virtually) {
    json["virtual"] = {{"step_ms", entry.virtually->step_ms},
                       {"messages", entry.virtually->messages},
                       {"actors", entry.virtually->actors},
                       {"wall_seconds", entry.virtually->wall_seconds}};
  }
  return json;
}

void AddRefusal(std::vector<Refusal>& refusals, const std::string& kind, const std::string& what) {
  std::string why = what;
  while (!why.empty() && why.back() == '\n') why.pop_back();
  why = std::regex_replace(why, std::regex("\n"), "; ");
  const auto same = std::ranges::find(refusals, why, &Refusal::why);
  if (same == refusals.end()) {
    refusals.push_back({kind, why});
  } else {
    same->kinds += ", " + kind;
  }
}

void AddRefusal(std::vector<Refusal>& refusals, const std::string& kind,
                const ConfigErrors& errors) {
  std::string what;
  for (const ConfigError& error : errors.errors()) {
    what += (error.place.line == 0 || error.place.argument ? error.text : ToString(error)) + '\n';
  }
  AddRefusal(refusals, kind, what);
}

std::string TextOf(const std::vector<Refusal>& refusals) {
  std::string text;
  for (const Refusal& refusal : refusals) text += refusal.kinds + ": " + refusal.why + '\n';
  return text;
}

}  // namespace troupe
