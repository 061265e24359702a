// Compares the steps that the cost model predicts from a profile with those of real runs (bench/README.md).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "bench/program.hpp"
#include "cli/profile/traced_job.hpp"
#include "configs/loader.hpp"
#include "plan/cost/device_file.hpp"
#include "plan/cost/job_cost.hpp"
#include "trace/analyze/median.hpp"

namespace troupe::bench {
namespace {

constexpr int kBatches = 2;
constexpr int kTurns = 6;
constexpr int kRounds = 8;

/// One configuration: a file and what is set over it.
struct Case {
  std::string file;
  std::vector<std::string> settings;
};

/// Reads a case from each line: FILE KEY=VALUE ..., split at spaces.
std::vector<Case> ReadCases(const std::string& path) {
  std::vector<Case> cases;
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    Case next;
    if (!(words >> next.file) || next.file.front() == '#') continue;
    for (std::string word; words >> word;) next.settings.push_back(word);
    cases.push_back(std::move(next));
  }
  return cases;
}

/// Plays the measured passes in virtual time, and adds the longest update.
double PlayedStep(const TracedJob& job, std::int64_t batch) {
  const JobPlan& plan = *job.plan;
  std::vector<ReplicaCosts> costs;
  std::map<int, double> updates;  // by device of the schedule
  for (const StagePlan& stage : plan.stages()) {
    const ModulePlan& module = plan.ModuleOf(stage.module);
    const auto units = module.units.In(plan.config().schedule.microbatches).count;
    auto& of_stage = costs.emplace_back(
        static_cast<std::size_t>(units),
        std::vector<PassCost>(static_cast<std::size_t>(module.config->layout.dp)));
    double after_s = 0.0;
    for (const MeasuredPass& pass : job.passes) {
      if (pass.stage != stage.stage || pass.batch != batch) continue;
      const double seconds = UndisturbedTime(pass.core_s);
      if (!IsPass(pass.kind)) {
        if (pass.dp == 0) after_s += seconds;
        continue;
      }
      PassCost& cost = of_stage.at(static_cast<std::size_t>(pass.unit)).at(At(pass.dp));
      Breakdown& part = pass.kind == WorkKind::kForward    ? cost.forward
                        : pass.kind == WorkKind::kBackward ? cost.inputs
                                                           : cost.weights;
      part[Spent::kLinears] = seconds;
    }
    for (const int device : plan.schedule().DevicesOf(stage.stage)) updates[device] += after_s;
  }
  double longest_s = 0.0;
  for (const auto& [device, seconds] : updates) longest_s = std::max(longest_s, seconds);
  const std::vector<std::int64_t> no_time(plan.graph().links().size());
  return PlayedPasses(plan, costs, no_time).passes_s + longest_s;
}

/// The device without what only takes time between passes, or while ranks wait for each other.
DeviceModel CoresOnly(DeviceModel device) {
  device.rates.pass_s = device.message_s = device.step_s = 0.0;
  for (auto& [name, module] : device.modules) module.rates.pass_s = 0.0;
  device.topology.inside = device.topology.between = {};
  return device;
}

/// The share of pairs in the same order in both lists, less that of pairs in the other order.
double KendallTau(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  double pairs = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = i + 1; k < a.size(); ++k, ++pairs) {
      const double product = (a[i] - a[k]) * (b[i] - b[k]);
      sum += product > 0.0 ? 1.0 : product < 0.0 ? -1.0 : 0.0;
    }
  }
  return pairs > 0.0 ? sum / pairs : 1.0;
}

/// A case as it is run.
struct Running {
  std::string text;
  TracedJob job;
  bool real = false;  ///< in real time
};

/// Runs all cases in turn, again and again, as a profile does.
std::vector<Running> RunCases(const std::vector<Case>& cases) {
  std::vector<Running> all;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (turn > 0) {
        AddTimes(RunTraced(all[i].job.plan, kBatches, kRounds), all[i].job);
        continue;
      }
      const auto& [file, settings] = cases[i];
      const auto plan = std::make_shared<const JobPlan>(LoadConfig(file, settings).config);
      std::string text = file;
      for (const std::string& setting : settings) text += " " + setting;
      all.push_back({text, RunTraced(plan, kBatches, kRounds), plan->config().cluster.ranks <= 2});
    }
    std::fprintf(stderr, "turn %d of %d\n", turn + 1, kTurns);
  }
  return all;
}

double MeasuredStep(const Running& running) {
  if (running.real) {
    std::vector<double> steps;
    for (const RunTrace& trace : running.job.traces) {
      for (const double step_s : StepsOf(trace)) steps.push_back(step_s);
    }
    return UndisturbedTime(steps);
  }
  double sum_s = 0.0;
  for (int batch = 0; batch < kBatches; ++batch) sum_s += PlayedStep(running.job, batch);
  return sum_s / kBatches;
}

void Run(const std::string& cases, const std::string& device_file) {
  std::vector<double> predicted;
  std::vector<double> measured;
  std::vector<double> errors;
  const auto all = RunCases(ReadCases(cases));
  std::printf("%-8s %12s %12s %7s  configuration\n", "time", "predicted ms", "measured ms",
              "error");
  for (const Running& running : all) {
    const JobPlan& plan = *running.job.plan;
    const DeviceModel full = ReadDevice(device_file, plan.config().run);
    const DeviceModel device = running.real ? full : CoresOnly(full);
    double predicted_s = 0.0;
    for (const PlacedSamples& batch : running.job.batches) {
      predicted_s += CostOfJob(plan, device, batch).step_s / kBatches;
    }
    const double measured_s = MeasuredStep(running);
    predicted.push_back(predicted_s);
    measured.push_back(measured_s);
    errors.push_back(std::abs(predicted_s / measured_s - 1.0));
    std::printf("%-8s %12.2f %12.2f %+6.1f%%  %s\n", running.real ? "real" : "virtual",
                predicted_s * 1e3, measured_s * 1e3, 100.0 * (predicted_s / measured_s - 1.0),
                running.text.c_str());
  }
  std::printf("\n%zu configurations: median error %.1f%%, worst %.1f%%; Kendall's tau %.3f\n",
              errors.size(), 100.0 * Median(errors), 100.0 * std::ranges::max(errors),
              KendallTau(predicted, measured));
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: bench_predicted_steps CASES DEVICE\n");
    return 2;
  }
  return troupe::bench::ExitCodeOf("bench_predicted_steps", [argv] {
    troupe::bench::Run(argv[1], argv[2]);
    return 0;
  });
}
