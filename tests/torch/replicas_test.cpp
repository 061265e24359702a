// Replicas that divide the state of the optimizer: their memory, what they send, and that nothing
// else changes.
#include <chrono>
#include <thread>

#include <catch2/catch.hpp>

#include "layout/at.hpp"
#include "plan/memory.hpp"
#include "plan/stage_parts.hpp"
#include "tests/torch/job.hpp"
#include "tests/torch/processes.hpp"

namespace troupe {
namespace {

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

/// A step of four samples, one image token each. Returns the squared norm of the gradients.
double Step(const Config& config, Job& job, int seed) {
  job.Train({MakeInputs(config, {1, 0, 1, 2}, seed)}, 1.0 / 20.0);
  const double squares = job.ReduceGradients();
  job.Update({.step = seed + 1, .clip_coefficient = 0.5, .schedule = 0.7});
  return squares;
}

}  // namespace

TEST_CASE("a replica keeps its part of the state, and no more than ZeRO-1 needs", "[torch]") {
  const auto precision = GENERATE(Precision::kFloat32, Precision::kBFloat16);
  const bool mixed = precision == Precision::kBFloat16;
  for (const int dp : {2, 4}) {
    for (const std::int64_t instances : {1, 2}) {
      const Config config = Divided(LanguageAlone({.dp = dp}, precision), instances);
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
    const double squares = Step(whole, one, step);
    CHECK(Step(divided, other, step) == Approx(squares).epsilon(1e-5));
  }
  for (const TensorKind kind :
       {TensorKind::kParameter, TensorKind::kFirstMoment, TensorKind::kSecondMoment}) {
    CHECK((other.Tensors(kind) == one.Tensors(kind)));
  }
  const Inputs inputs = MakeInputs(whole, {1, 0, 2, 1}, 9);
  CHECK(other.Evaluate(inputs).loss == one.Evaluate(inputs).loss);
}

TEST_CASE("sums of layers begin during the last backward, the others at the end of the step",
          "[torch]") {
  const Config whole = LanguageAlone({.dp = 2}, Precision::kFloat32);
  const Config config = GENERATE(false, true) ? Divided(whole, 1) : whole;
  Job job(config);
  StageProgram& program = job.Program("language");
  std::size_t sums = 0;
  const auto count = [&] {
    for (const ConcurrentWork& done : program.TakeConcurrent()) {
      sums += done.kind == WorkKind::kReduceBucket ? 1 : 0;
    }
  };
  const Inputs inputs = MakeInputs(config, {1, 0, 1, 2}, 1);
  job.Train({inputs, inputs, inputs}, 1.0 / 60.0);
  constexpr std::size_t kLayersAndHead = 4;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (count(); sums < kLayersAndHead && std::chrono::steady_clock::now() < end; count()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(sums == kLayersAndHead);
  job.ReduceGradients();
  count();
  CHECK(sums == kLayersAndHead + 2);  // the embedding, and norms
}

TEST_CASE("a forward waits for the parameters that another replica updates, layer by layer",
          "[torch]") {
  const Config whole =
      LanguageAlone({.dp = 2}, GENERATE(Precision::kFloat32, Precision::kBFloat16));
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
  const Config config = Divided(LanguageAlone({.dp = dp}, precision), 1);
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
