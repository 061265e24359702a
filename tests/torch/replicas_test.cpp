// Replicas that divide the state of the optimizer: their memory, what they send, and that nothing
// else changes.
#include <chrono>

#include <catch2/catch.hpp>

#include "layout/at.hpp"
#include "modules/groups.hpp"
#include "plan/memory.hpp"
#include "plan/stage_parts.hpp"
#include "tests/torch/job.hpp"
#include "tests/transport/memory_plane.hpp"

namespace troupe {
namespace {

/// A language model alone, large enough that padding and norms do not count.
Config LanguageAlone(int dp, Precision precision) {
  Config config = SmallConfig();
  config.run.precision = precision;
  std::erase_if(config.modules, [](const ModuleConfig& each) { return each.name != "language"; });
  config.edges.clear();
  auto& llama = ModuleOf(config, "language").As<LlamaConfig>();
  llama.vocab = 64;
  llama.hidden = 64;
  llama.layers = 3;
  llama.heads = 4;
  llama.kv_heads = 2;
  llama.mlp_hidden = 176;
  SetLayout(config, "language", {.dp = dp});
  config.cluster.ranks = dp;
  for (int rank = 0; rank < dp; ++rank) ModuleOf(config, "language").ranks[At(rank)] = rank;
  return config;
}

Config Divided(Config config, std::int64_t instances) {
  config.optimizer.shard = OptimizerShard::kData;
  config.optimizer.instances = instances;
  return config;
}

std::int64_t NumParameters(const Config& config) {
  std::int64_t count = 0;
  for (const auto& [name, spec] : AllParameters(config)) count += spec.num_elements();
  return count;
}

/// A process for every rank. Must outlive the jobs of its groups.
class Processes {
 public:
  explicit Processes(const Config& config)
      : config_(config),
        plan_(ProcessPlan::Local(config.cluster, config.cluster.ranks)),
        network_(config.cluster.ranks, abort_, 1) {}

  testing::MemoryNetwork& network() { return network_; }
  std::function<std::shared_ptr<GroupTable>(int rank)> groups() {
    return [this](int rank) {
      return std::make_shared<GroupTable>(config_, plan_, network_.plane(rank), abort_);
    };
  }

 private:
  Config config_;
  ProcessPlan plan_;
  std::shared_ptr<AbortSignal> abort_ = std::make_shared<AbortSignal>();
  testing::MemoryNetwork network_;
};

/// A step of four samples, one image token each.
void Step(const Config& config, Job& job, int seed) {
  job.Train({MakeInputs(config, {1, 0, 1, 2}, seed)}, 1.0 / 20.0);
  job.ReduceGradients();
  job.Update({.step = seed + 1, .clip_coefficient = 0.5, .schedule = 0.7});
}

}  // namespace

TEST_CASE("a replica keeps its part of the state, as check says, and no more than ZeRO-1 needs",
          "[torch]") {
  const auto precision = GENERATE(Precision::kFloat32, Precision::kBFloat16);
  const bool mixed = precision == Precision::kBFloat16;
  for (const int dp : {2, 4}) {
    for (const std::int64_t instances : {1, 2}) {
      const Config config = Divided(LanguageAlone(dp, precision), instances);
      Job job(config);
      const double part = static_cast<double>(instances) / dp;
      const double most = mixed ? 2 + 4 + 12 * part : 4 + 4 + 8 * part;
      const auto parameters = static_cast<double>(NumParameters(config));
      for (int replica = 0; replica < dp; ++replica) {
        INFO("dp " << dp << ", replica " << replica << ", instances " << instances);
        const std::size_t bytes = job.Program("language", 0, replica).state_bytes();
        CHECK(static_cast<double>(bytes) <= 1.05 * most * parameters);
        CHECK(bytes == EstimateMemory(config, "language", 0).state());
      }
    }
  }
}

TEST_CASE("replicas that divide the state train to the same bits as those that do not", "[torch]") {
  Config whole = SmallConfig();
  whole.run.precision = GENERATE(Precision::kFloat32, Precision::kFloat64, Precision::kBFloat16);
  ModuleOf(whole, "language").As<LlamaConfig>().tied_head = GENERATE(false, true);
  SetLayout(whole, "vision", {.tp = 2, .dp = 2});
  SetLayout(whole, "language", {.tp = 2, .pp = 2, .dp = 2});
  const Config divided = Divided(whole, 1);
  Job one(whole);
  Job other(divided);
  for (int step = 0; step < 3; ++step) {
    Step(whole, one, step);
    Step(divided, other, step);
  }
  for (const TensorKind kind :
       {TensorKind::kParameter, TensorKind::kFirstMoment, TensorKind::kSecondMoment}) {
    CHECK((other.Tensors(kind) == one.Tensors(kind)));
  }
  const Inputs inputs = MakeInputs(whole, {1, 0, 2, 1}, 9);
  CHECK(other.Evaluate(inputs).loss == one.Evaluate(inputs).loss);
}

TEST_CASE("a forward waits for the parameters that another replica updates, layer by layer",
          "[torch]") {
  const Config whole = LanguageAlone(2, GENERATE(Precision::kFloat32, Precision::kBFloat16));
  const Config divided = Divided(whole, 1);
  const UpdateStep step{.step = 1, .clip_coefficient = 0.5, .schedule = 0.7};
  const Inputs inputs = MakeInputs(whole, {1, 0, 2, 1}, 9);
  Job one(whole);
  Processes processes(divided);
  Job other(divided, processes.groups());
  for (Job* job : {&one, &other}) {
    job->Train({MakeInputs(whole, {1, 0, 1, 2}, 3)}, 1.0 / 20.0);
    job->ReduceGradients();
  }
  one.Update(step);
  processes.network().Slow(std::chrono::milliseconds(3));
  other.Update(step);
  CHECK(other.Evaluate(inputs).loss == one.Evaluate(inputs).loss);
  CHECK(processes.network().fault().empty());
}

TEST_CASE("a step with divided states sends each replica as much as ZeRO-1 must", "[torch]") {
  const auto precision = GENERATE(Precision::kFloat32, Precision::kBFloat16);
  const int dp = GENERATE(2, 4);
  const Config config = Divided(LanguageAlone(dp, precision), 1);
  Processes processes(config);
  testing::MemoryNetwork& network = processes.network();
  Job job(config, processes.groups());
  const auto step = [&](int seed) {
    Step(config, job, seed);
    job.Evaluate(MakeInputs(config, {1, 0, 1, 2}, seed));  // waits for the parameters
  };
  step(0);
  std::vector<std::uint64_t> before;
  for (int rank = 0; rank < dp; ++rank) before.push_back(network.bytes_received(rank));
  step(1);
  const double type_bytes = precision == Precision::kBFloat16 ? 2 : 4;
  const double most =
      (dp - 1.0) / dp * static_cast<double>(NumParameters(config)) * (4 + type_bytes);
  for (int rank = 0; rank < dp; ++rank) {
    const auto received = static_cast<double>(network.bytes_received(rank) - before[At(rank)]);
    INFO("replica " << rank << " of " << dp << ": " << received / most);
    CHECK(received <= 1.02 * most);
    CHECK(received >= 0.99 * most);
  }
  CHECK(network.fault().empty());
}

}  // namespace troupe
