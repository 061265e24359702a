// Runs steps of synthetic modules whose samples take different times, with data.order "random" and
// "balanced", and compares what "balanced" saves with the simulation of the same steps. bench/README.md
// explains the columns.
#include <algorithm>
#include <numeric>

#include "bench/report.hpp"
#include "bench/synthetic_job.hpp"
#include "layout/at.hpp"
#include "modules/synthetic/synthetic_program.hpp"
#include "schedule/round_evaluator.hpp"

namespace troupe::bench {
namespace {

constexpr int kSteps = 24;
constexpr double kForwardMs = 10.0;
constexpr double kSigma = 0.6;

struct Sizes {
  int stages = 0;
  std::int64_t microbatches = 0;
};

Config JobOf(const Sizes& sizes, DataOrder order) {
  const SyntheticGraph graph{"vision > language",
                             {{"vision", 1}, {"language", sizes.stages - 1}},
                             {{"vision", "language"}}};
  Config config = ConfigOf(graph, kForwardMs, 2.0 * kForwardMs);
  config.modules.front().As<SyntheticConfig>().time_sigma = kSigma;
  config.schedule.microbatches = sizes.microbatches;
  config.data.order = order;
  return config;
}

/// Simulates steps as data.order does.
RoundEvaluator EvaluatorOf(const Config& config) {
  const JobPlan plan(config);
  Schedule schedule = OneForwardOneBackward(LimitsOf(plan.graph()));
  schedule.link_ns.assign(plan.graph().links().size(), 1);
  return {plan.graph(), schedule, config.schedule.microbatches};
}

/// The samples and the simulated time of each step.
struct Expected {
  std::vector<std::vector<std::int64_t>> samples;
  std::vector<double> seconds;
};

Expected Simulated(const Config& config) {
  const std::int64_t microbatches = config.schedule.microbatches;
  RoundEvaluator evaluator = EvaluatorOf(config);
  const std::size_t stages = JobPlan(config).stages().size();
  SyntheticSource source(config);
  const std::uint64_t seed = TimeSeed(config, "vision");
  Expected expected;
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    const Round round{.number = step,
                      .step = step,
                      .microbatches = microbatches,
                      .place = step * config.global_batch(),
                      .group = config.global_batch()};
    auto& samples = expected.samples.emplace_back();
    PassTimes times;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      for (std::int64_t unit = 0; unit < microbatches; ++unit) {
        double factor = 1.0;
        if (stage == 0) {
          samples.push_back(*source.Load("vision", 0, round, unit)->tokens.as<std::int64_t>());
          factor = TimeFactor(seed, kSigma, samples.back());
        }
        times.forward_ns.resize(stage + 1);
        times.backward_ns.resize(stage + 1);
        const double ns = kForwardMs * 1e6 * factor;
        times.forward_ns[stage].push_back(static_cast<std::int64_t>(ns));
        times.backward_ns[stage].push_back(static_cast<std::int64_t>(2.0 * ns));
      }
    }
    expected.seconds.push_back(static_cast<double>(evaluator.Makespan(times)) * 1e-9);
    std::ranges::sort(samples);
  }
  return expected;
}

struct Measured {
  std::vector<double> seconds;    ///< by step, from its first pass to its last
  std::vector<double> simulated;  ///< with the real duration of each pass
};

/// The search for an order is not in these times: in `troupe train` it runs during the step before.
Measured Measure(const Config& config) {
  RoundEvaluator evaluator = EvaluatorOf(config);
  Measured measured;
  for (const TimedRound& round : RunRounds(config, kSteps, config.schedule.microbatches)) {
    std::int64_t begin_ns = round.stages.front().front().begin_ns;
    std::int64_t end_ns = begin_ns;
    PassTimes times;
    for (const auto& passes : round.stages) {
      const std::vector<std::int64_t> none(static_cast<std::size_t>(config.schedule.microbatches));
      auto& forward = times.forward_ns.emplace_back(none);
      auto& backward = times.backward_ns.emplace_back(none);
      for (const TimedPass& timed : passes) {
        begin_ns = std::min(begin_ns, timed.begin_ns);
        end_ns = std::max(end_ns, timed.end_ns);
        auto& of_kind = timed.pass.kind == PassKind::kForward ? forward : backward;
        of_kind.at(static_cast<std::size_t>(timed.pass.unit)) = timed.end_ns - timed.begin_ns;
      }
    }
    measured.seconds.push_back(static_cast<double>(end_ns - begin_ns) * 1e-9);
    measured.simulated.push_back(static_cast<double>(evaluator.Makespan(times)) * 1e-9);
  }
  return measured;
}

double Sum(const std::vector<double>& samples) {
  return std::accumulate(samples.begin(), samples.end(), 0.0);
}

void Compare(Report& report, const Sizes& sizes) {
  const Config random = JobOf(sizes, DataOrder::kRandom);
  const Config balanced = JobOf(sizes, DataOrder::kBalanced);
  const Expected drawn = Simulated(random);
  const Expected ordered = Simulated(balanced);
  if (drawn.samples != ordered.samples) report.AddFault("a step has other samples");
  const Measured drawn_run = Measure(random);
  const Measured ordered_run = Measure(balanced);
  const auto saved = [](const std::vector<double>& after, const std::vector<double>& before) {
    return 1.0 - Sum(after) / Sum(before);
  };
  const double simulated = saved(ordered.seconds, drawn.seconds);
  const double real = saved(ordered_run.seconds, drawn_run.seconds);
  const auto ms = [](const std::vector<double>& seconds) {
    return Fixed(Sum(seconds) / kSteps * 1e3, 1);
  };
  const auto percent = [](double share) { return Fixed(share * 100.0, 2) + " %"; };
  report.AddRow(
      {std::to_string(sizes.stages), std::to_string(sizes.microbatches), ms(drawn.seconds),
       ms(drawn_run.seconds), ms(ordered.seconds), ms(ordered_run.seconds), percent(simulated),
       percent(saved(ordered_run.simulated, drawn_run.simulated)), percent(real),
       percent(real - simulated)},
      {{"stages", sizes.stages},
       {"microbatches", sizes.microbatches},
       {"random_simulated_s", drawn.seconds},
       {"random_real_passes_s", drawn_run.simulated},
       {"random_s", drawn_run.seconds},
       {"balanced_simulated_s", ordered.seconds},
       {"balanced_real_passes_s", ordered_run.simulated},
       {"balanced_s", ordered_run.seconds}});
}

int Main(int argc, char** argv) {
  Report report(argc, argv, "microbatch_order_run",
                {"stages", "microb.", "random_sim", "random_ms", "balanced_sim", "balanced_ms",
                 "saved_sim", "real_passes", "saved", "difference"});
  for (const Sizes& sizes : {Sizes{3, 8}, {4, 16}, {4, 32}, {8, 32}}) Compare(report, sizes);
  return report.Finish();
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) { return troupe::bench::Main(argc, argv); }
