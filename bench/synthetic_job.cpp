#include "bench/synthetic_job.hpp"

#include <chrono>
#include <stdexcept>
#include <sys/prctl.h>

#include "cli/run_job.hpp"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

/// Notes when every pass began and ended. One per stage, used on its device's thread; the Director
/// takes the notes between rounds.
class TimedProgram : public StageProgram {
 public:
  TimedProgram(std::unique_ptr<StageProgram> program, std::vector<TimedPass>& passes)
      : program_(std::move(program)), passes_(passes) {}

  ForwardResult Forward(const ForwardPass& pass) override {
    const std::int64_t begin = NowNs();
    ForwardResult result = program_->Forward(pass);
    passes_.push_back({{PassKind::kForward, pass.unit}, begin, NowNs()});
    return result;
  }
  BackwardResult Backward(const BackwardPass& pass) override {
    const std::int64_t begin = NowNs();
    BackwardResult result = program_->Backward(pass);
    passes_.push_back({{PassKind::kBackward, pass.unit}, begin, NowNs()});
    return result;
  }
  void BackwardWeights(std::int64_t unit) override {
    const std::int64_t begin = NowNs();
    program_->BackwardWeights(unit);
    passes_.push_back({{PassKind::kWeight, unit}, begin, NowNs()});
  }
  double ReduceGradients() override { return program_->ReduceGradients(); }
  void Update(const UpdateStep& step) override { program_->Update(step); }
  std::vector<TensorPiece> Tensors(TensorKind kind) const override {
    return program_->Tensors(kind);
  }
  void SetTensors(TensorKind kind, const std::vector<TensorPiece>& pieces) override {
    program_->SetTensors(kind, pieces);
  }
  std::size_t state_bytes() const override { return program_->state_bytes(); }

 private:
  std::unique_ptr<StageProgram> program_;
  std::vector<TimedPass>& passes_;
};

struct RoundTimer : JobObserver {
  explicit RoundTimer(std::size_t num_stages) : passes(num_stages) {}

  void OnRound(const RoundResult& result) override {
    TimedRound round;
    round.seconds = static_cast<double>(NowNs() - begin_ns) * 1e-9;
    round.stages.resize(passes.size());
    // One by one: the programs hold references to these very vectors.
    for (std::size_t stage = 0; stage < passes.size(); ++stage) {
      passes[stage].swap(round.stages[stage]);
    }
    // Units count on from round to round; here each round counts from 0.
    const std::int64_t first = result.round.number * result.round.microbatches;
    for (auto& stage : round.stages) {
      for (TimedPass& timed : stage) timed.pass.unit -= first;
    }
    rounds.push_back(std::move(round));
  }

  std::int64_t begin_ns = 0;
  std::vector<std::vector<TimedPass>> passes;  ///< of the round that is running, by stage
  std::vector<TimedRound> rounds;
};

ProgramFactory Timed(ProgramFactory make, RoundTimer& timer, const JobPlan& plan) {
  return [make = std::move(make), &timer, &plan](const ShardAddress& shard) {
    // The kernel may end a sleep 50 us late to save wake-ups; that is not what is measured here.
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    int module = 0;
    while (plan.graph().modules()[static_cast<std::size_t>(module)].name != shard.module) ++module;
    const auto stage = static_cast<std::size_t>(plan.graph().StageIndex(module, shard.pp));
    return std::make_unique<TimedProgram>(make(shard), timer.passes[stage]);
  };
}

}  // namespace

Config ConfigOf(const SyntheticGraph& graph, double forward_ms, double backward_ms) {
  Config config;
  int rank = 0;
  for (const auto& [name, pp] : graph.modules) {
    ModuleConfig module;
    module.name = name;
    module.layout.pp = pp;
    module.synthetic.forward_ms = forward_ms;
    module.synthetic.backward_ms = backward_ms;
    for (int stage = 0; stage < pp; ++stage) module.ranks.push_back(rank++);
    config.modules.push_back(module);
  }
  config.cluster.ranks = rank;
  for (const auto& [from, to] : graph.edges) {
    EdgeConfig edge;
    edge.from = from;
    edge.to = to;
    edge.credits = rank + 1;
    config.edges.push_back(edge);
  }
  config.optimizer.clip_norm = 0.0;
  return config;
}

std::vector<TimedRound> RunRounds(const Config& config, int rounds, std::int64_t microbatches) {
  JobSetup setup;
  const auto plan = std::make_shared<const JobPlan>(config);
  const auto timer = std::make_shared<RoundTimer>(plan->graph().stages().size());
  setup.plan = plan;
  setup.source = OpenInputs(plan->config());
  setup.observer = timer;
  setup.rounds_ahead = 0;
  setup.rounds = [timer, rounds, microbatches](std::int64_t number) -> std::optional<Round> {
    if (number > rounds) return std::nullopt;
    timer->begin_ns = NowNs();
    return Round{number, true, number, microbatches, 1.0};
  };
  setup.wrap_programs = [timer, plan](ProgramFactory make) {
    return Timed(std::move(make), *timer, *plan);
  };
  const std::string failure = RunInProcess(setup);
  if (!failure.empty()) throw std::runtime_error(failure);
  return {timer->rounds.begin() + 1, timer->rounds.end()};
}

}  // namespace troupe::bench
