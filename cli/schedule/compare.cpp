#include "cli/schedule/compare.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "actors/virtual_time.hpp"
#include "layout/at.hpp"
#include "modules/synthetic/shape_program.hpp"

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

std::optional<double> IdealBubble(const Candidate& candidate) {
  const Config& config = candidate.plan->config();
  const ScheduleKind kind = config.schedule.kind;
  if (kind == ScheduleKind::kCsv) return std::nullopt;
  const int devices = DevicesInPath(*candidate.plan);
  // With fewer microbatches than devices zb-h1 has too few weight passes to fill the bubble.
  if (kind == ScheduleKind::kZbH1 && candidate.microbatches() < devices) return std::nullopt;
  double waiting = static_cast<double>(devices - 1) / static_cast<double>(candidate.microbatches());
  if (kind == ScheduleKind::kZbH1) waiting /= 3.0;
  if (kind == ScheduleKind::kInterleaved) waiting /= config.Sink().chunks;
  return waiting / (1.0 + waiting);
}

double BubbleOf(const JobPlan& plan, const Simulation& simulation) {
  double computed_ns = 0.0;
  for (const StagePlan& stage : plan.stages()) {
    const auto& grid = plan.ModuleOf(stage.module).grid;
    const int ranks = grid.layout().num_ranks() / grid.layout().pp;
    for (const TimedPass& pass : simulation.stages[static_cast<std::size_t>(stage.stage)]) {
      computed_ns += static_cast<double>(pass.end_ns - pass.begin_ns) * ranks;
    }
  }
  const double all_ns =
      static_cast<double>(simulation.makespan_ns) * static_cast<double>(plan.lock_steps().size());
  return all_ns > 0.0 ? 1.0 - computed_ns / all_ns : 0.0;
}

SimulatedRow SimulateRow(const Candidate& candidate, const StageTimes& times) {
  const JobPlan& plan = *candidate.plan;
  const Simulation simulation =
      Simulate(plan.graph(), times.WithLinks(plan.schedule()),
               times.AsPassDuration(plan.schedule()), candidate.microbatches());
  if (!simulation.blocked.empty()) {
    const BlockedStage& first = simulation.blocked.front();
    throw LayoutError(candidate.kind + ": " + plan.graph().StageName(first.stage) + " cannot run " +
                      ToString(first.next) + ", missing " + first.lacks);
  }
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
  job.takes_ns = times.AsWorkTime(job.plan->schedule());
  job.steps = steps;
  const VirtualRun run = RunInVirtualTime(job);
  if (!run.failure.empty()) throw std::runtime_error(run.failure);
  const std::int64_t before = steps > 1 ? run.step_ns[run.step_ns.size() - 2] : 0;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  return {static_cast<double>(run.makespan_ns() - before) * 1e-6, run.handled, run.actors,
          wall.count()};
}

}  // namespace troupe
