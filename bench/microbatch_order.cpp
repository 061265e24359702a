// Compares orders of microbatches (schedule/microbatch_order.hpp) with random ones, in simulated time.
// bench/README.md explains the columns.
#include "schedule/microbatch_order.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>
#include <random>

#include "bench/report.hpp"
#include "layout/at.hpp"
#include "schedule/simulate.hpp"

namespace troupe::bench {
namespace {

constexpr int kDraws = 200;
constexpr double kSigma = 0.6;
constexpr double kMeanNs = 1e6;

/// Log-normal forward times of the encoder; a stage of the language model takes their mean. Backwards take twice
/// as long.
PassTimes DrawTimes(int stages, int microbatches, std::mt19937& random) {
  std::normal_distribution<double> normal(-kSigma * kSigma / 2.0, kSigma);
  std::vector<std::int64_t> encoder;
  for (int i = 0; i < microbatches; ++i) {
    encoder.push_back(static_cast<std::int64_t>(kMeanNs * std::exp(normal(random))));
  }
  const std::int64_t mean =
      std::accumulate(encoder.begin(), encoder.end(), std::int64_t{0}) / microbatches;
  PassTimes times;
  for (int stage = 0; stage < stages; ++stage) {
    times.forward_ns.push_back(stage == 0 ? encoder
                                          : std::vector<std::int64_t>(encoder.size(), mean));
    auto& backward = times.backward_ns.emplace_back(times.forward_ns.back());
    for (std::int64_t& ns : backward) ns *= 2;
  }
  return times;
}

PassTimes Ordered(const PassTimes& times, const std::vector<int>& order) {
  std::vector<StageBlocks> stages;
  for (std::size_t stage = 0; stage < times.forward_ns.size(); ++stage) {
    stages.push_back({.columns = {0},
                      .forward_ns = {times.forward_ns[stage]},
                      .backward_ns = {times.backward_ns[stage]}});
  }
  return TimesOf(stages, {order});
}

std::int64_t Simulated(const StageGraph& graph, const Schedule& schedule, const PassTimes& times) {
  const auto duration = [&](int stage, const Pass& pass) {
    const auto& of_kind = pass.kind == PassKind::kForward ? times.forward_ns : times.backward_ns;
    return of_kind[At(stage)][static_cast<std::size_t>(pass.unit)];
  };
  return Simulate(graph, schedule, duration, std::ssize(times.forward_ns.front())).makespan_ns;
}

struct Saved {
  std::vector<double> heuristic;
  std::vector<double> search;
  std::vector<double> equal;
  std::vector<double> search_ms;
};

void MeasureDraw(Report& report, const StageGraph& graph, const Schedule& schedule,
                 const PassTimes& times, Saved& saved) {
  const std::int64_t microbatches = std::ssize(times.forward_ns.front());
  RoundEvaluator evaluator(graph, schedule, microbatches);
  const auto drawn = static_cast<double>(evaluator.Makespan(times));
  const auto saved_by = [&](const PassTimes& other) {
    return 1.0 - static_cast<double>(evaluator.Makespan(other)) / drawn;
  };
  const std::clock_t begin = std::clock();
  const PassTimes found = Ordered(times, BestOrder(graph, evaluator, times));
  saved.search_ms.push_back(static_cast<double>(std::clock() - begin) * 1e3 / CLOCKS_PER_SEC);
  saved.search.push_back(saved_by(found));
  saved.heuristic.push_back(saved_by(Ordered(times, OrderByIntervals(times))));
  PassTimes equal = times;
  equal.forward_ns.front() = equal.forward_ns.back();
  equal.backward_ns.front() = equal.backward_ns.back();
  saved.equal.push_back(saved_by(equal));
  if (evaluator.Makespan(found) != Simulated(graph, schedule, found)) {
    report.AddFault("the evaluator and the simulation differ");
  }
  for (std::size_t stage = 0; stage < times.forward_ns.size(); ++stage) {
    auto sorted = found.forward_ns[stage];
    auto expected = times.forward_ns[stage];
    std::ranges::sort(sorted);
    std::ranges::sort(expected);
    if (sorted != expected) report.AddFault("an order is not a permutation");
  }
}

double Mean(const std::vector<double>& samples) {
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

void Measure(Report& report, int stages, int microbatches, bool textbook) {
  const StageGraph graph({{"vision", 1}, {"language", stages - 1}}, {{0, 1, stages + 1}});
  Schedule schedule = OneForwardOneBackward(LimitsOf(graph));
  for (StageRule& rule : schedule.rules) rule.fixed = textbook;
  schedule.link_ns.assign(graph.links().size(), 1);
  std::mt19937 random(1);
  Saved saved;
  for (int draw = 0; draw < kDraws; ++draw) {
    MeasureDraw(report, graph, schedule, DrawTimes(stages, microbatches, random), saved);
  }
  const auto percent = [](double share) { return Fixed(share * 100.0, 2) + " %"; };
  const Summary time = Summarize(saved.search_ms);
  report.AddRow({std::to_string(stages), std::to_string(microbatches),
                 textbook ? "textbook" : "by arrival", percent(Mean(saved.heuristic)),
                 percent(Mean(saved.search)), percent(Summarize(saved.search).min),
                 percent(Mean(saved.equal)), Fixed(time.median, 2), Fixed(time.max, 2)},
                {{"stages", stages},
                 {"microbatches", microbatches},
                 {"textbook", textbook},
                 {"saved_by_heuristic", saved.heuristic},
                 {"saved_by_search", saved.search},
                 {"saved_by_equal_times", saved.equal},
                 {"search_ms", saved.search_ms}});
}

int Main(int argc, char** argv) {
  Report report(argc, argv, "microbatch_order",
                {"stages", "microb.", "passes", "heuristic", "search", "search_min", "equal",
                 "search_ms", "max_ms"});
  for (const bool textbook : {false, true}) {
    for (const auto& [stages, microbatches] : {std::pair{3, 8}, {4, 16}, {4, 32}, {8, 32}}) {
      Measure(report, stages, microbatches, textbook);
    }
  }
  return report.Finish();
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) { return troupe::bench::Main(argc, argv); }
