// A whole job of synthetic modules under CAF's deterministic scheduler: no thread, no sleep, no
// device. The messages can be delivered in any order that keeps each sender's own.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>

#include "actors/node_actor.hpp"
#include "kinds/synthetic.hpp"
#include "modules/synthetic/synthetic_program.hpp"
#include "schedule/stage_rule.hpp"
#include "tests/actors/hand_queue.hpp"
#include "trace/order.hpp"

namespace troupe {

/// A synthetic module on its own ranks, which follow those of the modules before it.
inline ModuleConfig SyntheticModule(const std::string& name, Layout layout, int first_rank) {
  ModuleConfig module;
  module.name = name;
  module.layout = layout;
  for (int r = 0; r < layout.num_ranks(); ++r) module.ranks.push_back(first_rank + r);
  module.As<SyntheticConfig>().forward_ms = 0;
  module.As<SyntheticConfig>().backward_ms = 0;
  module.As<SyntheticConfig>().hidden = 2;
  return module;
}

inline Layout LayoutOf(int tp, int pp, int dp) {
  Layout layout;
  layout.tp = tp;
  layout.pp = pp;
  layout.dp = dp;
  return layout;
}

/// Modules (name, layout) one behind the other, and the edges between them.
inline Config SyntheticConfigOf(const std::vector<std::pair<std::string, Layout>>& modules,
                                const std::vector<std::pair<std::string, std::string>>& edges) {
  Config config;
  int next_rank = 0;
  for (const auto& [name, layout] : modules) {
    config.modules.push_back(SyntheticModule(name, layout, next_rank));
    next_rank += layout.num_ranks();
  }
  config.cluster.ranks = next_rank;
  for (const auto& [from, to] : edges) {
    EdgeConfig edge;
    edge.from = from;
    edge.to = to;
    edge.credits = 8;
    config.edges.push_back(edge);
  }
  config.optimizer.clip_norm = 0.0;
  return config;
}

/// Two replicas of an encoder and a language model: three shards, whose gradients are clipped.
inline Config TwoModules() {
  Layout two;
  two.dp = 2;
  Config config =
      SyntheticConfigOf({{"vision", two}, {"language", Layout()}}, {{"vision", "language"}});
  config.schedule.micro_batch_size = 2;
  config.optimizer.clip_norm = 1.0;
  return config;
}

/// What an observer saw.
struct Seen : JobObserver {
  std::vector<RoundResult> rounds;
  std::vector<std::pair<std::string, double>> gradients;  ///< in the order of the shards
  std::map<std::string, double> parameters;

  void OnRound(const RoundResult& result) override { rounds.push_back(result); }
  void OnGradients(const Round&, const std::vector<TensorPiece>& pieces) override {
    for (const auto& piece : pieces) gradients.emplace_back(piece.name, *piece.value.as<double>());
  }
  void OnFinished(const std::vector<TensorPiece>& pieces, const FetchPiece&) override {
    for (const auto& piece : pieces) parameters[piece.name] = *piece.value.as<double>();
  }
  /// Gradients of replicas added up: programs without communicators leave that to the test.
  std::map<std::string, double> GradientSums() const {
    std::map<std::string, double> sums;
    for (const auto& [name, value] : gradients) sums[name] += value;
    return sums;
  }
};

/// `training` training rounds of `microbatches`.
inline RoundPlan TrainingRounds(std::int64_t training, std::int64_t microbatches) {
  return [=](std::int64_t number) -> std::optional<Round> {
    if (number >= training) return std::nullopt;
    return Round{number, true, number, microbatches, 1.0};
  };
}

/// What was noted in memory.
inline RunTrace TraceOf(const MessageTrace& trace) {
  return MergeTraces({trace.recorder()->Snapshot()}, "test");
}

class JobFixture {
 public:
  JobFixture() : system_(config_) {}

  /// Runs the job to its end, messages delivered oldest first.
  JobDone Run(const Config& config, const RoundPlan& rounds) {
    return RunShuffled(config, rounds, 0);
  }

  /// The same with the actor that runs next drawn at random; 0 = oldest first.
  JobDone RunShuffled(const Config& config, const RoundPlan& rounds, std::uint64_t seed) {
    merged_.reset();
    seen = std::make_shared<Seen>();
    abort = std::make_shared<AbortSignal>();
    NodeConfig node;
    node.plan = std::make_shared<const JobPlan>(config);
    node.make_program =
        wrap_program ? wrap_program(MakeSyntheticPrograms(config)) : MakeSyntheticPrograms(config);
    if (queues) {
      node.make_program = OnQueues(node.make_program);
      node.make_queue = [work = queues](int rank) {
        return std::make_unique<HandQueue>(work, rank);
      };
      node.make_group = [](int, auto host, const GroupNames&, std::optional<Lane>) { return host; };
      node.queued_passes = 2;
    }
    node.source = source ? source : std::make_shared<SyntheticSource>(config);
    node.observer = seen;
    node.abort = abort;
    node.tensors = std::make_shared<TensorStore>(abort);
    node.processes = std::make_shared<const ProcessPlan>(
        ProcessPlan::Single(node.plan->lock_steps().rbegin()->first + 1));
    node.rounds = rounds;
    node.checkpoints = checkpoints;
    node.storage = storage;
    node.storage.publish = [this](const PublishManifest& manifest, const std::string&) {
      published.push_back(manifest.folder);
    };
    node.inspect = inspect;
    node.threads = false;
    node.trace = trace = std::make_shared<MessageTrace>(0);
    node.trace_records = 1 << 14;
    node.memory = memory;
    node.gpu_of = gpu_of;
    node.actors = actors;
    plan = node.plan;
    JobDone done{"the job never ended"};
    {
      caf::scoped_actor self{system_};
      auto handle = system_.spawn(RunNode, std::move(node));
      auto answer = self->request(handle, caf::infinite, RunJob{});
      Deliver(seed);
      if (self->has_next_message()) {
        answer.receive([&](const JobDone& d) { done = d; },
                       [&](const caf::error& e) { done.failure = FailureOf(e); });
      }
      caf::anon_send_exit(handle, caf::exit_reason::user_shutdown);
    }
    Deliver(0);
    return done;
  }

  /// All messages and work of the last run.
  const RunTrace& Trace() const {
    if (!merged_) merged_ = TraceOf(*trace);
    return *merged_;
  }

  /// "F0 F1 B0 ..." of one stage in one round, for each of its replicas and ranks.
  std::vector<std::string> Orders(const std::string& stage, std::int64_t round = 0) const {
    std::vector<PassRecord> records;
    const RunTrace& run = Trace();
    for (const TraceWork& work : run.work) records.push_back(work.pass);
    std::vector<std::string> orders;
    for (const PassOrder& entry : PassOrders(records, round)) {
      if (plan->graph().StageName(entry.stage) == stage) orders.push_back(entry.text);
    }
    return orders;
  }

  /// The same where all replicas and ranks must have run one order.
  std::string Order(const std::string& stage, std::int64_t round = 0) const {
    const auto orders = Orders(stage, round);
    if (orders.empty()) return "";
    for (const std::string& order : orders) {
      if (order != orders.front()) return "replicas differ: " + order + " and " + orders.front();
    }
    return orders.front();
  }

  std::function<ProgramFactory(ProgramFactory)> wrap_program;  ///< puts something between; optional
  /// Devices of the next runs have queues.
  void UseQueues() { queues = std::make_shared<HandWork>(); }

  std::shared_ptr<HandWork> queues;
  std::shared_ptr<ActivityTable> actors;  ///< gets the actors of the next runs; optional
  std::function<void()> looking;          ///< called between any two deliveries; optional
  std::shared_ptr<InputSource> source;    ///< instead of SyntheticSource
  std::shared_ptr<MemoryMeter> memory;    ///< null: none is noted
  std::function<int(int rank)> gpu_of;    ///< empty: ranks compute on no GPU
  Checkpoints checkpoints;                ///< of the next runs; by itself none
  ShardStorage storage;                   ///< what writes them
  std::vector<std::string> published;     ///< folders of their manifests, of all runs
  bool inspect = false;
  std::shared_ptr<Seen> seen;
  std::shared_ptr<AbortSignal> abort;
  std::shared_ptr<const JobPlan> plan;
  std::shared_ptr<MessageTrace> trace;

 private:
  struct SystemConfig : caf::actor_system_config {
    SystemConfig() {
      set("scheduler.policy", caf::atom("testing"));
      set("scheduler.max-throughput", std::size_t{1});
    }
  };

  void Deliver(std::uint64_t seed) {
    auto& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
    std::mt19937_64 random(seed);
    const auto work_left = [this] { return queues && !queues->empty(); };
    while (!scheduler.jobs.empty() || work_left()) {
      if (looking) looking();
      if (work_left() && (scheduler.jobs.empty() || (seed != 0 && random() % 4 == 0))) {
        queues->RunOne(seed == 0 ? nullptr : &random);
        continue;
      }
      if (seed != 0) {
        std::swap(scheduler.jobs.front(), scheduler.jobs[random() % scheduler.jobs.size()]);
      }
      scheduler.run_once();
    }
  }

  SystemConfig config_;
  caf::actor_system system_;
  mutable std::optional<RunTrace> merged_;
};

}  // namespace troupe
