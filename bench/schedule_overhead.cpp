// How much longer a step of the actors takes than the same rule with messages that take no time.
// bench/README.md explains the columns.
#include <map>
#include <utility>

#include "bench/report.hpp"
#include "bench/synthetic_job.hpp"

namespace troupe::bench {
namespace {

constexpr std::int64_t kMicrobatches = 16;
constexpr int kRounds = 9;

const std::vector<SyntheticGraph> kGraphs = {
    {"chain of 8", {{"language", 8}}, {}},
    {"figure 4(a)",
     {{"encoder1", 3}, {"encoder2", 1}, {"language", 4}},
     {{"encoder1", "language"}, {"encoder2", "language"}}},
    {"pp2 > pp6", {{"vision", 2}, {"language", 6}}, {{"vision", "language"}}},
};

/// The bound with every pass as long as it really was in `round`.
double BoundOf(const TimedRound& round, const StageGraph& graph) {
  std::vector<std::map<std::pair<PassKind, std::int64_t>, std::int64_t>> took(round.stages.size());
  for (std::size_t stage = 0; stage < round.stages.size(); ++stage) {
    for (const TimedPass& timed : round.stages[stage]) {
      took[stage][{timed.pass.kind, timed.pass.unit}] = timed.end_ns - timed.begin_ns;
    }
  }
  const auto duration = [&](int stage, const Pass& pass) {
    return took[static_cast<std::size_t>(stage)].at({pass.kind, pass.unit});
  };
  const auto simulation = Simulate(graph, LimitsOf(graph), duration, kMicrobatches);
  return static_cast<double>(simulation.makespan_ns) * 1e-9;
}

/// Empty, or which stage ran another order than the simulation.
std::string OrderFault(const TimedRound& round, const Simulation& simulation,
                       const StageGraph& graph) {
  for (std::size_t stage = 0; stage < round.stages.size(); ++stage) {
    std::vector<Pass> order;
    for (const TimedPass& timed : round.stages[stage]) order.push_back(timed.pass);
    const auto expected = simulation.OrderOf(static_cast<int>(stage));
    if (order == expected) continue;
    return graph.StageName(static_cast<int>(stage)) + " ran " + ToString(order) + ", expected " +
           ToString(expected);
  }
  return {};
}

void Measure(Report& report, const SyntheticGraph& graph, double forward_ms, double backward_ms) {
  const Config config = ConfigOf(graph, forward_ms, backward_ms);
  const JobPlan plan(config);
  const auto ns = [](double ms) { return static_cast<std::int64_t>(ms * 1e6); };
  const auto simulation = Simulate(plan.graph(), LimitsOf(plan.graph()),
                                   EqualDurations(ns(forward_ms), ns(backward_ms)), kMicrobatches);
  const double bound = static_cast<double>(simulation.makespan_ns) * 1e-9;
  std::vector<double> ratios;
  std::vector<double> real_ratios;
  std::vector<double> seconds;
  for (const TimedRound& round : RunRounds(config, kRounds, kMicrobatches)) {
    seconds.push_back(round.seconds);
    ratios.push_back(round.seconds / bound);
    real_ratios.push_back(round.seconds / BoundOf(round, plan.graph()));
    const std::string fault = OrderFault(round, simulation, plan.graph());
    if (!fault.empty()) report.AddFault(graph.name + ": " + fault);
  }
  const Summary ratio = Summarize(ratios);
  const Summary real = Summarize(real_ratios);
  report.AddRow(
      {graph.name, Fixed(forward_ms, 0), Fixed(backward_ms, 0), Fixed(bound * 1e3, 1),
       Fixed(Summarize(seconds).median * 1e3, 2), Fixed(ratio.median, 4), Fixed(ratio.mad, 4),
       Fixed(ratio.max, 4), Fixed(real.median, 4), real.median <= 1.02 ? "yes" : "NO"},
      {{"graph", graph.name},
       {"forward_ms", forward_ms},
       {"backward_ms", backward_ms},
       {"bound_s", bound},
       {"step_s", seconds},
       {"ratio", ratios},
       {"ratio_to_real_passes", real_ratios}});
}

int Main(int argc, char** argv) {
  Report report(argc, argv, "schedule_overhead",
                {"graph", "fwd_ms", "bwd_ms", "bound_ms", "step_ms", "ratio", "mad", "max",
                 "to_real", "<= 1.02"});
  for (const SyntheticGraph& graph : kGraphs) {
    for (const double backward_ms : {5.0, 10.0}) Measure(report, graph, 5.0, backward_ms);
  }
  return report.Finish();
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) { return troupe::bench::Main(argc, argv); }
