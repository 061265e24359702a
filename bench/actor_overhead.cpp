// Compares a training step through the actors with a plain loop over the same program and inputs.
// bench/README.md explains the columns.
#include <chrono>
#include <cmath>
#include <map>
#include <time.h>
#include <utility>

#include "app/run_job.hpp"
#include "bench/report.hpp"
#include "configs/loader.hpp"
#include "data/row_source.hpp"
#include "modules/groups.hpp"
#include "modules/learning_rate.hpp"
#include "modules/torch/compute.hpp"
#include "modules/torch/programs.hpp"
#include "modules/torch/reference.hpp"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSteps = 81;            // the first one warms up and is not counted
constexpr std::int64_t kBatches = 4;  // different global batches, used in turn

/// Wall clock and processor time of all threads. On a shared machine the second is more reliable.
struct Cost {
  double wall_s = 0.0;
  double cpu_s = 0.0;

  static Cost Now() {
    timespec cpu{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return {std::chrono::duration<double>(Clock::now().time_since_epoch()).count(),
            static_cast<double>(cpu.tv_sec) + static_cast<double>(cpu.tv_nsec) * 1e-9};
  }
  Cost Since(const Cost& begin) const { return {wall_s - begin.wall_s, cpu_s - begin.cpu_s}; }
};

/// Language and vision model inline on one rank: configs/shapes_inline.toml without its layout.
Config OneRank(const std::string& precision) {
  return LoadConfig("configs/shapes_inline.toml",
                    {"cluster.ranks=1", "modules.language.ranks=\"0\"",
                     "modules.language.layout={tp=1,pp=1}", "schedule.microbatches=4",
                     "run.precision=\"" + precision + "\"", "run.steps=" + std::to_string(kSteps)})
      .config;
}

/// Preloaded inputs, so that no side decodes images.
class Preloaded : public InputSource {
 public:
  explicit Preloaded(const Config& config) {
    RowSource source(config);
    for (std::int64_t batch = 0; batch < kBatches; ++batch) {
      const Round round{.number = batch,
                        .step = batch,
                        .microbatches = config.schedule.microbatches,
                        .place = batch * config.global_batch(),
                        .group = config.global_batch()};
      counts_.push_back(source.Count(round));
      whole_.push_back(source.LoadWhole(round));
      for (std::int64_t unit = 0; unit < round.microbatches; ++unit) {
        for (const ModuleConfig& module : config.modules) {
          if (module.inline_in) continue;
          inputs_[{module.name, batch, unit}] = source.Load(module.name, 0, round, unit);
        }
      }
    }
  }
  std::shared_ptr<const Inputs> Assemble(const FeedUnit& unit,
                                         const std::vector<Buffer>&) override {
    return inputs_.at({unit.module, unit.round.step % kBatches, unit.unit});
  }
  RoundCounts Count(const Round& round) override {
    return counts_[static_cast<std::size_t>(round.step % kBatches)];
  }
  const Inputs& Whole(std::int64_t step) const {
    return whole_[static_cast<std::size_t>(step % kBatches)];
  }

 private:
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, std::shared_ptr<const Inputs>>
      inputs_;
  std::vector<RoundCounts> counts_;
  std::vector<Inputs> whole_;
};

/// Reads the numbers that the device had not computed when the pass returned.
template <class Result>
Result Finished(Result result) {
  if (result.finish) result.finish(result);
  return result;
}

/// The same program without actors.
class PlainLoop {
 public:
  PlainLoop(const Config& config, std::shared_ptr<Preloaded> source)
      : config_(config),
        source_(std::move(source)),
        program_(MakeTorchPrograms(
            config, std::make_shared<GroupTable>(config, std::make_shared<AbortSignal>()))(
            {"language", 0, 0, 0, 0, 0})) {}

  LossSums Step(std::int64_t step) {
    Round round{step, true, step, config_.schedule.microbatches, 1.0};
    const double scale = 1.0 / static_cast<double>(source_->Count(round).labels);
    LossSums loss;
    for (std::int64_t m = 0; m < round.microbatches; ++m, ++unit_) {
      const auto inputs = source_->Load("language", 0, round, m);
      loss += Finished(program_->Forward({unit_, true, scale, {}, inputs})).loss;
      Finished(program_->Backward({unit_, {}}));
    }
    const double norm = std::sqrt(Finished(program_->ReduceGradients()).squared_norm);
    const double clip = config_.optimizer.clip_norm;
    program_->Update({step + 1, clip > 0.0 ? std::min(1.0, clip / (norm + 1e-6)) : 1.0,
                      ScheduleFactor(config_.optimizer, step, config_.run.steps)});
    return loss;
  }

 private:
  const Config& config_;
  std::shared_ptr<Preloaded> source_;
  std::unique_ptr<StageProgram> program_;
  std::int64_t unit_ = 0;
};

/// The times of one side, by step.
struct Samples {
  std::vector<double> wall_s;
  std::vector<double> cpu_s;
  void Add(const Cost& cost) {
    wall_s.push_back(cost.wall_s);
    cpu_s.push_back(cost.cpu_s);
  }
};
struct Sides {
  Samples actors, plain, again, reference;
};

/// Between two rounds the job is idle, so all other sides take their step there: all sides run
/// under the same conditions, step by step.
class Interleaved : public JobObserver {
 public:
  Interleaved(const Config& config, std::shared_ptr<Preloaded> source, Report& report)
      : source_(source),
        report_(report),
        plain_(config, source),
        again_(config, source),
        reference_(config) {}

  void Begin() { begin_ = Cost::Now(); }

  void OnRound(const RoundResult& result) override {
    const Cost actors = Cost::Now().Since(begin_);
    SetupComputeThread();
    const std::int64_t step = result.round.step;
    LossSums plain_loss;
    const Cost plain = Time([&] { plain_loss = plain_.Step(step); });
    const Cost again = Time([&] { again_.Step(step); });
    LossSums reference_loss;
    const Cost reference = Time([&] {
      reference_loss = reference_.Step(source_->Whole(step), result.round.loss_scale, step);
    });
    // The same program on the same inputs must give the same bits. The reference sums in another
    // order.
    const std::string where = "step " + std::to_string(step) + ": the loss of the actors is " +
                              std::to_string(result.loss.loss) + ", that of ";
    if (result.loss.loss != plain_loss.loss) {
      report_.AddFault(where + "the plain loop " + std::to_string(plain_loss.loss));
    }
    if (std::abs(result.loss.loss - reference_loss.loss) > 1e-2 * reference_loss.loss) {
      report_.AddFault(where + "the reference " + std::to_string(reference_loss.loss));
    }
    if (step == 0) return;
    sides.actors.Add(actors);
    sides.plain.Add(plain);
    sides.again.Add(again);
    sides.reference.Add(reference);
  }

  Sides sides;

 private:
  template <class Body>
  static Cost Time(Body body) {
    const Cost begin = Cost::Now();
    body();
    return Cost::Now().Since(begin);
  }

  std::shared_ptr<Preloaded> source_;
  Report& report_;
  PlainLoop plain_;
  PlainLoop again_;
  Reference reference_;
  Cost begin_;
};

std::vector<double> Ratios(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  return ratios;
}

/// `target`: the largest acceptable ratio; 0: none.
void AddSide(Report& report, const std::string& name, const Samples& side, const Samples& plain,
             double target) {
  const Summary wall = Summarize(side.wall_s);
  const Summary ratio = Summarize(Ratios(side.wall_s, plain.wall_s));
  const double cpu_ratio = Summarize(side.cpu_s).median / Summarize(plain.cpu_s).median;
  const std::string holds = ratio.median <= target ? "yes" : "NO";
  report.AddRow({name, Fixed(wall.median * 1e3, 3), Fixed(wall.mad * 1e3, 3),
                 Fixed(wall.min * 1e3, 3), Fixed(wall.max * 1e3, 3), Fixed(ratio.median, 4),
                 Fixed(ratio.mad, 4), Fixed(Summarize(side.cpu_s).median * 1e3, 3),
                 Fixed(cpu_ratio, 4), target > 0.0 ? holds : ""},
                {{"side", name}, {"step_s", side.wall_s}, {"cpu_s", side.cpu_s}});
}

int Main(int argc, char** argv) {
  RestartWithBestKernels(argv);
  const Compute compute = SetupCompute();
  Report report(argc, argv, "actor_overhead",
                {"side", "step_ms", "mad_ms", "min_ms", "max_ms", "ratio", "mad", "cpu_ms",
                 "cpu_ratio", "<= 1.02"});
  report.AddLine(compute.description);
  if (!compute.warning.empty()) report.AddLine("WARNING: " + compute.warning);

  JobSetup setup;
  setup.plan = std::make_shared<const JobPlan>(OneRank("float32"));
  const Config& config = setup.plan->config();
  const auto source = std::make_shared<Preloaded>(config);
  const auto observer = std::make_shared<Interleaved>(config, source, report);
  setup.source = source;
  setup.observer = observer;
  setup.rounds_ahead = 0;
  setup.rounds = [observer, &config](std::int64_t number) -> std::optional<Round> {
    if (number >= kSteps) return std::nullopt;
    observer->Begin();
    return Round{number, true, number, config.schedule.microbatches, 1.0};
  };
  const std::string failure = RunInProcess(setup).text;
  if (!failure.empty()) report.AddFault(failure);
  const Sides& sides = observer->sides;
  if (sides.plain.wall_s.empty()) return report.Finish();
  AddSide(report, "actors", sides.actors, sides.plain, 1.02);
  AddSide(report, "plain", sides.plain, sides.plain, 0.0);
  AddSide(report, "plain 2", sides.again, sides.plain, 0.0);
  AddSide(report, "reference", sides.reference, sides.plain, 0.0);
  return report.Finish();
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) { return troupe::bench::Main(argc, argv); }
