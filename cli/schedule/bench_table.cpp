#include "cli/schedule/bench_table.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "actors/virtual_time.hpp"
#include "layout/at.hpp"
#include "layout/text.hpp"
#include "modules/synthetic/shape_program.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

/// Modules whose rows are one value for each sample. Stages, rules and gradients stay.
Config WithSmallRows(Config config) {
  SyntheticConfig small;
  small.hidden = 1;
  small.rows_per_sample = 1;
  for (ModuleConfig& module : config.modules) module.model = small;
  return config;
}

/// Devices along the longest path through the modules.
int DevicesInPath(const JobPlan& plan) {
  const StageGraph& graph = plan.graph();
  std::vector<int> devices(plan.modules().size(), 0);
  int longest = 0;
  for (const int stage : graph.TopologicalOrder()) {
    const StageNode& node = graph.stages()[At(stage)];
    if (node.pp != 0) continue;
    int before = 0;
    for (const int link : node.in) {
      const int from = graph.links()[At(link)].from;
      before = std::max(before, devices[At(graph.stages()[At(from)].module)]);
    }
    int& sum = devices[At(node.module)];
    sum = before + plan.ModuleOf(node.module).grid.layout().pp;
    longest = std::max(longest, sum);
  }
  return longest;
}

/// Share of `base` that `step` saves; 0 if steps take no time, as with --scale M=0.
double GainOver(double base, double step) { return base == step ? 0.0 : 1.0 - step / base; }

std::string StepText(const BenchEntry& entry) {
  return entry.step_ms.empty() ? Formatted("%.2f", entry.simulated.step_ms)
                               : MedianText(entry.step_ms);
}

std::string BubbleText(const BenchEntry& entry) {
  const auto ideal = IdealBubble(entry.candidate);
  return Percent(entry.bubble()) + " / " + (ideal ? Percent(*ideal) : "-");
}

std::string VirtualText(const BenchEntry& entry) {
  const double step_ms = entry.virtually->step_ms;
  return Formatted("%.3f", step_ms) + " (" +
         Formatted("%+.3f%%", 0.0 - 100.0 * GainOver(entry.simulated.step_ms, step_ms)) + ")";
}

}  // namespace

Interval95 MedianOf(std::vector<double> samples) {
  if (samples.empty()) throw std::invalid_argument("the median of no samples");
  std::ranges::sort(samples);
  const std::size_t n = samples.size();
  // The true median is outside [k-th, (n+1-k)-th] with 2 P(Binomial(n, 1/2) < k).
  double outside = 0.0;
  double term = 1.0;
  for (std::size_t i = 0; i < n; ++i) term /= 2.0;
  std::size_t k = 0;
  for (; k + 1 < (n + 1) / 2; ++k) {
    outside += 2.0 * term;
    if (outside > 0.05) break;
    term = term * static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  const std::size_t skip = k == 0 ? 0 : k - 1;
  const double middle = (samples[(n - 1) / 2] + samples[n / 2]) / 2.0;
  if (static_cast<int>(n) < kFewestForInterval) return {middle, std::nullopt};
  return {middle, Interval95::Bounds{samples[skip], samples[n - 1 - skip]}};
}

std::string MedianText(const std::vector<double>& samples) {
  const Interval95 interval = MedianOf(samples);
  const std::string median = Formatted("%.2f", interval.median);
  if (!interval.bounds) return median;
  return median + " [" + Formatted("%.2f", interval.bounds->low) + ", " +
         Formatted("%.2f", interval.bounds->high) + "]";
}

Difference DifferenceOf(const std::vector<double>& a, const std::vector<double>& b) {
  const Interval95 own = MedianOf(a);
  const Interval95 its = MedianOf(b);
  if (!own.bounds || !its.bounds) return Difference::kUnknown;
  const bool overlap = own.bounds->low <= its.bounds->high && its.bounds->low <= own.bounds->high;
  return overlap ? Difference::kNoise : Difference::kClear;
}

std::string RateText(double per_second) {
  if (per_second == 0.0) return "-";
  return Formatted(per_second < 100.0 ? "%.2f" : "%.0f", per_second);
}

std::optional<double> IdealBubble(const Candidate& candidate) {
  const Config& config = candidate.plan->config();
  const ScheduleKind kind = config.schedule.kind;
  if (kind == ScheduleKind::kCsv) return std::nullopt;
  for (const EdgePlan& edge : candidate.plan->edges()) {
    if (edge.placement == Placement::kColocated) return std::nullopt;  // no chain of devices
  }
  const int devices = DevicesInPath(*candidate.plan);
  // With fewer microbatches than devices zb-h1 has too few weight passes to fill the bubble.
  if (kind == ScheduleKind::kZbH1 && candidate.microbatches() < devices) return std::nullopt;
  double waiting = static_cast<double>(devices - 1) / static_cast<double>(candidate.microbatches());
  if (kind == ScheduleKind::kZbH1) waiting /= 3.0;
  if (kind == ScheduleKind::kInterleaved) waiting /= config.Sink().chunks;
  return waiting / (1.0 + waiting);
}

SimulatedRow SimulateRow(const Candidate& candidate, const StageTimes& times) {
  const JobPlan& plan = *candidate.plan;
  const Simulation simulation = Simulate(candidate, times);
  const std::string why = WhyBlocked(plan.graph(), simulation);
  if (!why.empty()) throw LayoutError(candidate.kind + ": " + why);
  SimulatedRow row;
  row.step_ms = static_cast<double>(simulation.makespan_ns) * 1e-6;
  row.bubble = BubbleOf(plan, simulation);
  for (int stage = 0; stage < static_cast<int>(plan.stages().size()); ++stage) {
    row.peak_activations.push_back(PeakInFlight(simulation, stage));
  }
  return row;
}

VirtualRow RunVirtually(const Candidate& candidate, const StageTimes& times, std::int64_t steps) {
  const auto begin = std::chrono::steady_clock::now();
  const Config small = WithSmallRows(candidate.plan->config());
  VirtualJob job;
  job.plan = candidate.plan;
  job.make_program = MakeShapePrograms(small);
  job.source = std::make_shared<SyntheticSource>(small);
  job.takes_ns = WorkTimeOf(times, job.plan->schedule());
  job.steps = steps;
  const VirtualRun run = RunInVirtualTime(job);
  if (!run.failure.empty()) throw std::runtime_error(run.failure);
  const std::int64_t before = steps > 1 ? run.step_ns[run.step_ns.size() - 2] : 0;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  return {static_cast<double>(run.makespan_ns() - before) * 1e-6, run.handled, run.actors,
          wall.count()};
}

std::string FirstOf(const std::vector<std::int64_t>& numbers, std::size_t most, const char* more) {
  std::vector<std::string> words;
  for (const std::int64_t number : numbers) {
    if (words.size() < most) words.push_back(std::to_string(number));
  }
  return Listed(words, " ") + (numbers.size() > most ? more : "");
}

std::string VerdictText(const BenchEntry& entry, const BenchEntry& baseline) {
  if (&entry == &baseline) return "baseline";
  const double gain = GainOver(baseline.step(), entry.step());
  const std::string bubbles =
      "the bubble is " + Percent(entry.bubble()) + " instead of " + Percent(baseline.bubble());
  const std::string& other = baseline.candidate.kind;
  if (std::abs(gain) < 0.0005) return "as fast as " + other;
  std::string caution;
  if (!entry.step_ms.empty() && !baseline.step_ms.empty()) {
    const Difference difference = DifferenceOf(entry.step_ms, baseline.step_ms);
    if (difference == Difference::kNoise) {
      return "no difference from " + other + " beyond the noise";
    }
    if (difference == Difference::kUnknown) caution = " (which may be noise)";
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
           StepText(entry),      RateText(entry.samples_per_second()),
           BubbleText(entry),    FirstOf(entry.simulated.peak_activations, 12, " ..")};
    if (measured) row.push_back(Formatted("%+.1f%%", 100.0 * MedianOf(entry.errors).median));
    if (virtually) row.push_back(VirtualText(entry));
    row.push_back(VerdictText(entry, *baseline));
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
  std::string why;
  for (const std::string& line : Split(what, '\n')) {
    if (!line.empty()) why += (why.empty() ? "" : "; ") + line;
  }
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
