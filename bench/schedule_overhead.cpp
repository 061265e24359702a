// Compares a step of the actors with the same rule and messages that take no time.
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

/// The bound with the real duration of every pass in `round`.
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
  const auto simulation =
      Simulate(graph, OneForwardOneBackward(LimitsOf(graph)), duration, kMicrobatches);
  return static_cast<double>(simulation.makespan_ns) * 1e-9;
}

/// Whether every stage ran the simulated order. Another order is not a fault: the rule serves the
/// messages that have arrived.
bool SameOrder(const TimedRound& round, const Simulation& simulation) {
  for (std::size_t stage = 0; stage < round.stages.size(); ++stage) {
    std::vector<Pass> order;
    for (const TimedPass& timed : round.stages[stage]) order.push_back(timed.pass);
    if (order != simulation.OrderOf(static_cast<int>(stage))) return false;
  }
  return true;
}

/// The first stage that did not run every pass once, forwards and backwards each in order; empty:
/// none.
std::string PassesFault(const TimedRound& round, const StageGraph& graph) {
  for (std::size_t stage = 0; stage < round.stages.size(); ++stage) {
    std::int64_t forwards = 0;
    std::int64_t backwards = 0;
    bool in_order = true;
    for (const TimedPass& timed : round.stages[stage]) {
      const bool forward = timed.pass.kind == PassKind::kForward;
      in_order = in_order && timed.pass.unit == (forward ? forwards : backwards)++;
    }
    if (in_order && forwards == kMicrobatches && backwards == kMicrobatches) continue;
    return graph.StageName(static_cast<int>(stage)) + " ran " + std::to_string(forwards) +
           " forwards and " + std::to_string(backwards) + " backwards" +
           (in_order ? "" : ", out of order");
  }
  return {};
}

void Measure(Report& report, const SyntheticGraph& graph, double forward_ms, double backward_ms) {
  const Config config = ConfigOf(graph, forward_ms, backward_ms);
  const JobPlan plan(config);
  const auto ns = [](double ms) { return static_cast<std::int64_t>(ms * 1e6); };
  const auto simulation = Simulate(plan.graph(), OneForwardOneBackward(LimitsOf(plan.graph())),
                                   EqualDurations(ns(forward_ms), ns(backward_ms)), kMicrobatches);
  const double bound = static_cast<double>(simulation.makespan_ns) * 1e-9;
  std::vector<double> ratios;
  std::vector<double> real_ratios;
  std::vector<double> seconds;
  int same_order = 0;
  for (const TimedRound& round : RunRounds(config, kRounds, kMicrobatches)) {
    const std::string fault = PassesFault(round, plan.graph());
    if (!fault.empty()) {
      report.AddFault(graph.name + ": " + fault);
      continue;
    }
    same_order += SameOrder(round, simulation) ? 1 : 0;
    seconds.push_back(round.seconds);
    ratios.push_back(round.seconds / bound);
    real_ratios.push_back(round.seconds / BoundOf(round, plan.graph()));
  }
  if (ratios.empty()) return;
  const Summary ratio = Summarize(ratios);
  const Summary real = Summarize(real_ratios);
  report.AddRow(
      {graph.name, Fixed(forward_ms, 0), Fixed(backward_ms, 0), Fixed(bound * 1e3, 1),
       Fixed(Summarize(seconds).median * 1e3, 2), Fixed(ratio.median, 4), Fixed(ratio.mad, 4),
       Fixed(ratio.min, 4), Fixed(ratio.max, 4), Fixed(real.median, 4), Fixed(real.min, 4),
       std::to_string(same_order) + "/" + std::to_string(kRounds),
       ratio.median <= 1.02 ? "yes" : "NO"},
      {{"graph", graph.name},
       {"forward_ms", forward_ms},
       {"backward_ms", backward_ms},
       {"bound_s", bound},
       {"step_s", seconds},
       {"ratio", ratios},
       {"same_order", same_order},
       {"ratio_to_real_passes", real_ratios}});
}

int Main(int argc, char** argv) {
  Report report(argc, argv, "schedule_overhead",
                {"graph", "fwd_ms", "bwd_ms", "bound_ms", "step_ms", "ratio", "mad", "min", "max",
                 "to_real", "real_min", "same_order", "<= 1.02"});
  for (const SyntheticGraph& graph : kGraphs) {
    for (const double backward_ms : {5.0, 10.0}) Measure(report, graph, 5.0, backward_ms);
  }
  return report.Finish();
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) { return troupe::bench::Main(argc, argv); }
