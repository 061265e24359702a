#include "cli/schedule/timed_rounds.hpp"

#include <mutex>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "app/run_job.hpp"
#include "modules/wrapped_program.hpp"
#include "trace/clock.hpp"

namespace troupe {
namespace {

/// The work of one shard in this round. Its device appends; the Director takes it between rounds.
struct ShardPasses {
  int stage = 0;
  std::vector<TimedPass> passes;
  std::int64_t other_ns = 0;  ///< in reductions and updates
};

class TimedProgram : public WrappedProgram {
 public:
  TimedProgram(std::unique_ptr<StageProgram> inner, std::shared_ptr<ShardPasses> shard)
      : WrappedProgram(std::move(inner)), shard_(std::move(shard)) {}

  ForwardResult Forward(const ForwardPass& pass) override {
    return Timed({PassKind::kForward, pass.unit}, [&] { return program->Forward(pass); });
  }
  BackwardResult Backward(const BackwardPass& pass) override {
    return Timed({PassKind::kBackward, pass.unit}, [&] { return program->Backward(pass); });
  }
  void BackwardWeights(std::int64_t unit) override {
    Timed({PassKind::kWeight, unit}, [&] {
      program->BackwardWeights(unit);
      return 0;
    });
  }
  ReducedGradients ReduceGradients() override {
    const std::int64_t begin = NowNs();
    ReducedGradients done = program->ReduceGradients();
    shard_->other_ns += NowNs() - begin;
    return done;
  }
  void Update(const UpdateStep& step) override {
    const std::int64_t begin = NowNs();
    program->Update(step);
    shard_->other_ns += NowNs() - begin;
  }

 private:
  template <class Run>
  std::invoke_result_t<Run> Timed(const Pass& pass, Run run) {
    const std::int64_t begin = NowNs();
    auto result = run();
    shard_->passes.push_back({pass, begin, NowNs()});
    return result;
  }

  std::shared_ptr<ShardPasses> shard_;
};

struct RoundTimer : JobObserver {
  explicit RoundTimer(std::size_t stages) : num_stages(stages) {}

  void OnRound(const RoundResult& result) override {
    TimedRound round;
    round.seconds = static_cast<double>(NowNs() - begin_ns) * 1e-9;
    round.stages.resize(num_stages);
    // Units count on from round to round; here each round counts from 0.
    const std::int64_t first = result.round.number * result.round.microbatches;
    const std::lock_guard lock(mutex);
    for (const auto& shard : shards) {
      auto& stage = round.stages[static_cast<std::size_t>(shard->stage)];
      for (TimedPass& timed : shard->passes) {
        timed.pass.unit -= first;
        stage.push_back(timed);
      }
      shard->passes.clear();
      round.other_seconds += static_cast<double>(std::exchange(shard->other_ns, 0)) * 1e-9;
    }
    rounds.push_back(std::move(round));
  }

  /// Called by every device when it makes its program.
  std::shared_ptr<ShardPasses> NewShard(int stage) {
    const std::lock_guard lock(mutex);
    return shards.emplace_back(std::make_shared<ShardPasses>(ShardPasses{stage, {}, 0}));
  }

  std::size_t num_stages;
  std::int64_t begin_ns = 0;
  std::vector<TimedRound> rounds;
  std::mutex mutex;
  std::vector<std::shared_ptr<ShardPasses>> shards;
};

ProgramFactory Timed(ProgramFactory make, std::shared_ptr<RoundTimer> timer,
                     std::shared_ptr<const JobPlan> plan) {
  return [make = std::move(make), timer = std::move(timer),
          plan = std::move(plan)](const ShardAddress& shard) {
    int module = 0;
    while (plan->ModuleOf(module).config->name != shard.module) ++module;
    return std::make_unique<TimedProgram>(
        make(shard), timer->NewShard(plan->graph().StageIndex(module, shard.pp)));
  };
}

}  // namespace

std::vector<TimedRound> RunTimedRounds(const std::shared_ptr<const JobPlan>& plan, int rounds,
                                       std::int64_t microbatches) {
  const auto timer = std::make_shared<RoundTimer>(plan->graph().stages().size());
  JobSetup setup;
  setup.plan = plan;
  setup.source = OpenInputs(plan->config());
  setup.observer = timer;
  setup.rounds_ahead = 0;
  setup.rounds = [timer, rounds, microbatches, batch = plan->config().global_batch()](
                     std::int64_t number) -> std::optional<Round> {
    if (number > rounds) return std::nullopt;
    timer->begin_ns = NowNs();
    return Round{.number = number,
                 .step = number,
                 .microbatches = microbatches,
                 .place = number * batch,
                 .group = batch};
  };
  setup.wrap_programs = [timer, plan](ProgramFactory make) {
    return Timed(std::move(make), timer, plan);
  };
  const std::string failure = RunInProcess(setup).text;
  if (!failure.empty()) throw std::runtime_error(failure);
  return {timer->rounds.begin() + 1, timer->rounds.end()};
}

}  // namespace troupe
