#include "cli/schedule/timed_rounds.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <malloc.h>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "app/run_job.hpp"
#include "modules/device/backend.hpp"
#include "modules/memory_meter.hpp"
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

/// The most memory in use at the ends of passes. Thread-safe.
class MostMemory {
 public:
  explicit MostMemory(const Config& config)
      : meter_(config.cluster.backend == Backend::kCuda ? MakeMemoryMeter(config) : nullptr),
        before_(meter_ ? 0 : HeapBytes()) {}

  void Look(int rank) {
    const std::int64_t bytes = meter_ ? meter_->UseOf(rank).in_use_bytes : HeapBytes() - before_;
    std::int64_t most = most_.load();
    while (bytes > most && !most_.compare_exchange_weak(most, bytes)) {
    }
  }
  std::int64_t Take() { return most_.exchange(0); }

 private:
  /// Without the pages that the heap keeps: how many depends on the jobs before.
  static std::int64_t HeapBytes() {
    const struct mallinfo2 heap = mallinfo2();
    return static_cast<std::int64_t>(heap.uordblks + heap.hblkhd) - SideMemoryBytes();
  }

  std::shared_ptr<MemoryMeter> meter_;  ///< of GPUs
  std::int64_t before_ = 0;
  std::atomic<std::int64_t> most_ = 0;
};

class TimedProgram : public WrappedProgram {
 public:
  TimedProgram(std::unique_ptr<StageProgram> inner, std::shared_ptr<ShardPasses> shard,
               std::function<void()> look)
      : WrappedProgram(std::move(inner)), shard_(std::move(shard)), look_(std::move(look)) {}

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
    if (look_) look_();
    return result;
  }

  std::shared_ptr<ShardPasses> shard_;
  std::function<void()> look_;  ///< at the memory in use; may be empty
};

struct RoundTimer : JobObserver {
  RoundTimer(const JobPlan& plan, bool watch_memory) : num_stages(plan.graph().stages().size()) {
    if (watch_memory) memory.emplace(plan.config());
  }

  void OnRound(const RoundResult& result) override {
    TimedRound round;
    round.seconds = static_cast<double>(NowNs() - begin_ns) * 1e-9;
    round.stages.resize(num_stages);
    if (memory) round.memory_bytes = memory->Take();
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
  std::optional<MostMemory> memory;
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
    std::function<void()> look;
    if (timer->memory) look = [timer, rank = shard.rank] { timer->memory->Look(rank); };
    return std::make_unique<TimedProgram>(
        make(shard), timer->NewShard(plan->graph().StageIndex(module, shard.pp)), std::move(look));
  };
}

}  // namespace

std::vector<TimedRound> RunTimedRounds(const std::shared_ptr<const JobPlan>& plan, int rounds,
                                       std::int64_t microbatches, const TimedSetup& timed) {
  const auto timer = std::make_shared<RoundTimer>(*plan, timed.watch_memory);
  JobSetup setup;
  setup.plan = plan;
  setup.source = timed.source ? timed.source : OpenInputs(plan->config());
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
