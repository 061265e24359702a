// Jobs on real threads: what the deterministic scheduler cannot run, because ranks block in
// collectives.
#include <future>

#include <catch2/catch.hpp>

#include "tests/actors/job_fixture.hpp"

namespace troupe {
namespace {

/// One run with a thread per device, feed and director. A run that does not end within the bound is
/// ended by the abort signal and reported as a failure.
struct ThreadedJob {
  std::shared_ptr<Seen> seen = std::make_shared<Seen>();
  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();
  std::shared_ptr<const JobPlan> plan;
  std::map<int, std::shared_ptr<Ring>> rings;
  std::function<ProgramFactory(ProgramFactory)> wrap_program;
  bool inspect = false;

  JobDone Run(const Config& config, const RoundPlan& rounds) {
    NodeConfig node;
    plan = node.plan = std::make_shared<const JobPlan>(config);
    node.make_program = MakeSyntheticPrograms(config, Replicas(config));
    if (wrap_program) node.make_program = wrap_program(node.make_program);
    node.source = std::make_shared<SyntheticSource>(config);
    node.observer = seen;
    node.abort = abort;
    node.tensors = std::make_shared<TensorStore>(abort);
    node.processes =
        std::make_shared<const ProcessPlan>(ProcessPlan::Single(plan->lock_steps().rbegin()->first + 1));
    node.rounds = rounds;
    node.inspect = inspect;
    for (const auto& [rank, set] : plan->lock_steps()) {
      node.rings[rank] = std::make_shared<Ring>(4096);
    }
    rings = node.rings;
    caf::actor_system_config system_config;
    caf::actor_system system{system_config};
    caf::scoped_actor self{system};
    auto handle = system.spawn(RunNode, std::move(node));
    JobDone done{"the job never ended"};
    self->request(handle, std::chrono::seconds(30), RunJob{})
        .receive([&](const JobDone& d) { done = d; },
                 [&](const caf::error& e) {
                   done.failure = TextOf(e);
                   abort->Raise("the test gave up waiting");
                 });
    self->send_exit(handle, caf::exit_reason::user_shutdown);
    return done;
  }

  std::string Order(const std::string& stage) const {
    std::vector<PassRecord> records;
    for (const auto& [rank, ring] : rings) {
      const auto snapshot = ring->Snapshot();
      records.insert(records.end(), snapshot.records.begin(), snapshot.records.end());
    }
    for (const PassOrder& entry : PassOrders(records, 0)) {
      if (plan->graph().StageName(entry.stage) == stage) return entry.text;
    }
    return {};
  }

 private:
  /// One group of replicas per module and stage.
  std::function<std::shared_ptr<Communicator>(const ShardAddress&)> Replicas(const Config& config) {
    auto groups = std::make_shared<
        std::map<std::tuple<std::string, int, int>, std::vector<std::shared_ptr<Communicator>>>>();
    for (const ModuleConfig& module : config.modules) {
      for (int pp = 0; pp < module.layout.pp; ++pp) {
        for (int tp = 0; tp < module.layout.tp; ++tp) {
          for (auto& member : MakeLocalGroup(module.layout.dp, abort)) {
            (*groups)[{module.name, pp, tp}].push_back(std::move(member));
          }
        }
      }
    }
    return [groups](const ShardAddress& shard) {
      return groups->at({shard.module, shard.pp, shard.tp})[static_cast<std::size_t>(shard.dp)];
    };
  }
};

Config ColocatedConfig(Layout vision, Layout language, int ranks) {
  Config config =
      SyntheticConfigOf({{"vision", vision}, {"language", language}}, {{"vision", "language"}});
  config.modules[1].ranks = config.modules[0].ranks;
  config.cluster.ranks = ranks;
  return config;
}

}  // namespace

TEST_CASE("a colocated encoder runs once per window, before and after", "[actors][threads]") {
  Layout dp2, pp2;
  dp2.dp = 2;
  pp2.pp = 2;
  Config config = ColocatedConfig(dp2, pp2, 2);
  config.schedule.micro_batch_size = 2;
  config.schedule.window = 3;
  ThreadedJob job;
  REQUIRE(job.Run(config, TrainingRounds(1, 8)).failure == "");
  CHECK(job.Order("vision.s0") == "F0 B0 F1 B1 F2 B2");  // windows of 3, 3 and 2 microbatches
  CHECK(job.Order("language.s1") == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7");
}

TEST_CASE("every layout of a colocated edge gives the gradients of one rank", "[actors][threads]") {
  const auto gradients = [](Config config) {
    config.schedule.micro_batch_size = 8 / config.modules[1].layout.dp;
    for (ModuleConfig& module : config.modules) module.synthetic.rows_per_sample = 3;
    ThreadedJob job;
    job.inspect = true;
    const JobDone done = job.Run(config, TrainingRounds(1, 4));
    REQUIRE(done.failure == "");
    std::map<std::string, double> sums;
    for (const auto& [name, value] : job.seen->gradients) sums[name] = value;  // replicas agree
    return sums;
  };
  const auto layout = [](int tp, int pp, int dp) {
    Layout l;
    l.tp = tp;
    l.pp = pp;
    l.dp = dp;
    return l;
  };
  // Patterns of a synthetic sink run over the rows of its own shard, so the language model keeps
  // dp = 1 where the reference has it; encoders are cut in every way.
  const auto reference = gradients(ColocatedConfig(layout(1, 1, 1), layout(1, 1, 1), 1));
  CHECK(gradients(ColocatedConfig(layout(1, 1, 4), layout(4, 1, 1), 4)) == reference);
  CHECK(gradients(ColocatedConfig(layout(2, 1, 2), layout(4, 1, 1), 4)) == reference);
  CHECK(gradients(ColocatedConfig(layout(4, 1, 1), layout(4, 1, 1), 4)) == reference);
}

TEST_CASE("a program that throws on one rank ends the job with its cause", "[actors][threads]") {
  struct Throwing : StageProgram {
    explicit Throwing(std::unique_ptr<StageProgram> p) : program(std::move(p)) {}
    ForwardResult Forward(const ForwardPass& pass) override {
      if (pass.unit == 2) throw std::runtime_error("device on fire\nsecond line");
      return program->Forward(pass);
    }
    BackwardResult Backward(const BackwardPass& pass) override { return program->Backward(pass); }
    double ReduceGradients() override { return program->ReduceGradients(); }
    void Update(const UpdateStep& step) override { program->Update(step); }
    std::vector<TensorPiece> Tensors(TensorKind kind) const override {
      return program->Tensors(kind);
    }
    void SetTensors(TensorKind kind, const std::vector<TensorPiece>& pieces) override {
      program->SetTensors(kind, pieces);
    }
    std::size_t state_bytes() const override { return program->state_bytes(); }
    std::unique_ptr<StageProgram> program;
  };
  Layout dp2, pp2dp2;
  dp2.dp = 2;
  pp2dp2.pp = 2;
  pp2dp2.dp = 2;
  const Config config =
      SyntheticConfigOf({{"vision", dp2}, {"language", pp2dp2}}, {{"vision", "language"}});
  ThreadedJob job;
  job.wrap_program = [](ProgramFactory make) -> ProgramFactory {
    return [make](const ShardAddress& shard) -> std::unique_ptr<StageProgram> {
      auto program = make(shard);
      if (shard.module == "language" && shard.pp == 1 && shard.dp == 1) {
        return std::make_unique<Throwing>(std::move(program));
      }
      return program;
    };
  };
  CHECK(job.Run(config, TrainingRounds(3, 4)).failure ==
        "language.s1 dp1 rank 5 forward of microbatch 2: device on fire");
}

}  // namespace troupe
