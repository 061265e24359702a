#include "cli/schedule/timed_rounds.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "cli/run_job.hpp"
#include "trace/clock.hpp"

namespace troupe {
namespace {

/// What one stage's passes took, by kind.
using Took = std::map<PassKind, std::vector<std::int64_t>>;

/// What every device notes, by rank and stage; the Director takes it between steps.
struct Notes {
  std::mutex mutex;
  std::map<int, Took> stages;
  std::int64_t other_ns = 0;  ///< what is computed besides passes

  void Add(int stage, PassKind kind, std::int64_t ns) {
    const std::lock_guard lock(mutex);
    stages[stage][kind].push_back(ns);
  }
  void AddOther(std::int64_t ns) {
    const std::lock_guard lock(mutex);
    other_ns += ns;
  }
};

class TimedProgram : public StageProgram {
 public:
  TimedProgram(std::unique_ptr<StageProgram> program, int stage, std::shared_ptr<Notes> notes)
      : program_(std::move(program)), stage_(stage), notes_(std::move(notes)) {}

  ForwardResult Forward(const ForwardPass& pass) override {
    return Timed(PassKind::kForward, [&] { return program_->Forward(pass); });
  }
  BackwardResult Backward(const BackwardPass& pass) override {
    return Timed(PassKind::kBackward, [&] { return program_->Backward(pass); });
  }
  void BackwardWeights(std::int64_t unit) override {
    Timed(PassKind::kWeight, [&] {
      program_->BackwardWeights(unit);
      return 0;
    });
  }
  double ReduceGradients() override {
    const std::int64_t begin = NowNs();
    const double norm = program_->ReduceGradients();
    notes_->AddOther(NowNs() - begin);
    return norm;
  }
  void Update(const UpdateStep& step) override {
    const std::int64_t begin = NowNs();
    program_->Update(step);
    notes_->AddOther(NowNs() - begin);
  }
  std::vector<TensorPiece> Tensors(TensorKind kind) const override {
    return program_->Tensors(kind);
  }
  void SetTensors(TensorKind kind, const std::vector<TensorPiece>& pieces) override {
    program_->SetTensors(kind, pieces);
  }
  std::size_t state_bytes() const override { return program_->state_bytes(); }

 private:
  template <class Run>
  std::invoke_result_t<Run> Timed(PassKind kind, Run run) {
    const std::int64_t begin = NowNs();
    auto result = run();
    notes_->Add(stage_, kind, NowNs() - begin);
    return result;
  }

  std::unique_ptr<StageProgram> program_;
  int stage_;
  std::shared_ptr<Notes> notes_;
};

std::int64_t Median(std::vector<std::int64_t> samples) {
  if (samples.empty()) return 0;
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

struct StepTimer : JobObserver {
  explicit StepTimer(std::size_t stages) : num_stages(stages) {}

  void OnRound(const RoundResult&) override {
    MeasuredStep step;
    step.seconds = static_cast<double>(NowNs() - begin_ns) * 1e-9;
    const std::lock_guard lock(notes->mutex);
    step.stages.resize(num_stages);
    step.busy_seconds = static_cast<double>(std::exchange(notes->other_ns, 0)) * 1e-9;
    for (auto& [stage, took] : std::exchange(notes->stages, {})) {
      StageTime& time = step.stages[static_cast<std::size_t>(stage)];
      for (const auto& [kind, samples] : took) {
        for (const std::int64_t ns : samples) step.busy_seconds += static_cast<double>(ns) * 1e-9;
      }
      time.forward_ns = Median(took[PassKind::kForward]);
      time.weight_ns = Median(took[PassKind::kWeight]);
      time.backward_ns = Median(took[PassKind::kBackward]) + time.weight_ns;
    }
    steps.push_back(std::move(step));
  }

  std::size_t num_stages;
  std::int64_t begin_ns = 0;
  std::shared_ptr<Notes> notes = std::make_shared<Notes>();
  std::vector<MeasuredStep> steps;
};

}  // namespace

std::vector<MeasuredStep> RunSteps(const std::shared_ptr<const JobPlan>& plan, int steps) {
  const auto timer = std::make_shared<StepTimer>(plan->graph().stages().size());
  JobSetup setup;
  setup.plan = plan;
  setup.source = OpenInputs(plan->config());
  setup.observer = timer;
  setup.rounds_ahead = 0;
  setup.rounds = [timer, steps, microbatches = plan->config().schedule.microbatches](
                     std::int64_t number) -> std::optional<Round> {
    if (number > steps) return std::nullopt;
    timer->begin_ns = NowNs();
    return Round{number, true, number, microbatches, 1.0};
  };
  setup.wrap_programs = [notes = timer->notes, plan](ProgramFactory make) -> ProgramFactory {
    return [make = std::move(make), notes, plan](const ShardAddress& shard) {
      int module = 0;
      while (plan->ModuleOf(module).config->name != shard.module) ++module;
      return std::make_unique<TimedProgram>(make(shard), plan->graph().StageIndex(module, shard.pp),
                                            notes);
    };
  };
  const std::string failure = RunInProcess(setup);
  if (!failure.empty()) throw std::runtime_error(failure);
  return {timer->steps.begin() + 1, timer->steps.end()};
}

}  // namespace troupe
