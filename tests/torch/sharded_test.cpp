#include "checkpoint/sharded.hpp"

#include <algorithm>
#include <functional>
#include <future>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "checkpoint/run_checkpoints.hpp"
#include "modules/tensor_pieces.hpp"
#include "tests/checkpoint/temporary_directory.hpp"
#include "tests/torch/job.hpp"

namespace troupe {
namespace {

using Whole = std::map<std::string, std::vector<double>>;

void TrainSteps(const Config& config, Job& job, int begin, int end) {
  for (int step = begin; step < end; ++step) {
    job.Train({MakeInputs(config, {1, 0, 2, 1}, step), MakeInputs(config, {0, 1, 1, 2}, step + 9)},
              1.0 / 17.0);
    job.ReduceGradients();
    job.Update({.step = step + 1, .clip_coefficient = 0.5, .schedule = 1.0 / (step + 1)});
  }
}

/// What training depends on, by kind.
std::vector<Whole> StateOf(const Job& job) {
  return {job.Tensors(TensorKind::kParameter), job.Tensors(TensorKind::kFirstMoment),
          job.Tensors(TensorKind::kSecondMoment)};
}

/// All shards of `config`; no part of a checkpoint depends on their ranks.
std::vector<ShardAddress> ShardsOf(const Config& config) {
  std::vector<ShardAddress> shards;
  for (const ModuleConfig& module : config.modules) {
    if (module.inline_in) continue;
    for (int pp = 0; pp < module.layout.pp; ++pp) {
      for (int dp = 0; dp < module.layout.dp; ++dp) {
        for (int tp = 0; tp < module.layout.tp; ++tp) {
          shards.push_back({.module = module.name, .pp = pp, .dp = dp, .tp = tp});
        }
      }
    }
  }
  return shards;
}

void ForEachShard(const Config& config, Job& job,
                  const std::function<void(StageProgram&, const ShardAddress&)>& visit) {
  for (const ShardAddress& shard : ShardsOf(config)) {
    visit(job.Program(shard.module, shard.pp, shard.dp, shard.tp), shard);
  }
}

void Save(const Config& config, Job& job, const std::string& run, std::int64_t step) {
  const std::string folder = CheckpointFolder(run, step);
  std::vector<WrittenShard> stored;
  ForEachShard(config, job, [&](StageProgram& program, const ShardAddress& shard) {
    stored.push_back({shard, WriteShard(program, shard, {folder, step})});
  });
  WriteManifest(folder, MakeManifest({.step = step}, stored));
}

/// Saves copies that were made before `meanwhile` trained on.
void SaveCopies(const Config& config, Job& job, const std::string& run, std::int64_t step,
                const std::function<void()>& meanwhile) {
  ForEachShard(config, job, [&](StageProgram& program, const ShardAddress&) {
    std::promise<WorkTimes> copied;
    program.CopyState([&](const WorkTimes& times) { copied.set_value(times); });
    const WorkTimes times = copied.get_future().get();
    CHECK(times.error.empty());
    CHECK(times.begin_ns <= times.end_ns);
  });
  meanwhile();
  const std::string folder = CheckpointFolder(run, step);
  std::vector<WrittenShard> stored;
  ForEachShard(config, job, [&](StageProgram& program, const ShardAddress& shard) {
    const auto copies = [&](TensorKind kind) { return program.CopiedTensors(kind); };
    stored.push_back({shard, WriteShard(StoredPieces(copies), shard, {folder, step})});
  });
  WriteManifest(folder, MakeManifest({.step = step}, stored));
}

/// Copies the state of every shard. Returns the values of what is stored.
std::vector<StoredPiece> CopyAll(const Config& config, Job& job) {
  std::vector<StoredPiece> all;
  ForEachShard(config, job, [&](StageProgram& program, const ShardAddress&) {
    std::promise<void> copied;
    program.CopyState([&](const WorkTimes&) { copied.set_value(); });
    copied.get_future().wait();
    const auto copies = [&](TensorKind kind) { return program.CopiedTensors(kind); };
    std::ranges::move(StoredPieces(copies), std::back_inserter(all));
  });
  return all;
}

std::vector<std::string> ValuesOf(const std::vector<StoredPiece>& pieces) {
  std::vector<std::string> values;
  for (const auto& [kind, piece] : pieces) {
    values.emplace_back(piece.value.as<char>(), piece.value.num_bytes());
  }
  return values;
}

void Restore(const Config& config, Job& job, const std::string& run) {
  const auto folder = NewestCheckpoint(run);
  REQUIRE(folder);
  std::vector<StoredTensor> read;
  ForEachShard(config, job, [&](StageProgram& program, const ShardAddress& shard) {
    const LoadedShard loaded = ReadShard(program, shard, {*folder, {}});
    read.insert(read.end(), loaded.tensors.begin(), loaded.tensors.end());
  });
  CheckDigests({*folder}, read);
}

/// Trains, saves, starts again from other values, restores, trains on.
void RequireSameAfterInterruption(const Config& config) {
  const TemporaryDirectory directory;
  Job uninterrupted(config);
  TrainSteps(config, uninterrupted, 0, 4);

  {
    Job before(config);
    TrainSteps(config, before, 0, 1);
    const std::string run = directory.File("run");
    if (GENERATE(false, true)) {
      SaveCopies(config, before, run, 1, [&] { TrainSteps(config, before, 1, 2); });
      SaveCopies(config, before, run, 2, [&] { TrainSteps(config, before, 2, 3); });
    } else {
      Save(config, before, run, 1);
      TrainSteps(config, before, 1, 2);
      Save(config, before, run, 2);
    }
  }
  Config other_values = config;
  other_values.run.seed += 1;
  Job after(other_values);
  Restore(config, after, directory.File("run"));
  TrainSteps(config, after, 2, 4);

  const std::vector<Whole> expected = StateOf(uninterrupted);
  const std::vector<Whole> state = StateOf(after);
  for (std::size_t kind = 0; kind < expected.size(); ++kind) {
    INFO("kind " << kind);
    REQUIRE(state[kind].size() == expected[kind].size());
    for (const auto& [name, values] : expected[kind]) {
      INFO(name);
      CHECK((state[kind].at(name) == values));  // bit for bit
    }
  }
}

TEST_CASE("training goes on from a checkpoint as if nothing had happened", "[torch]") {
  // Tied head: the last stage holds the embedding that the first one owns.
  Config config = SmallConfig();
  config.run.precision = GENERATE(Precision::kFloat32, Precision::kFloat64, Precision::kBFloat16);
  ModuleOf(config, "language").As<LlamaConfig>().tied_head = true;
  SetLayout(config, "vision", {.tp = 2, .dp = 2});
  SetLayout(config, "language", {.tp = 2, .pp = GENERATE(1, 2), .dp = 2});
  RequireSameAfterInterruption(config);
}

TEST_CASE("a copy of the state keeps its values while someone refers to it", "[torch]") {
  Config config = SmallConfig();
  if (GENERATE(false, true)) config.optimizer.shard = OptimizerShard::kData;
  SetLayout(config, "vision", {.tp = 2, .dp = 2});
  SetLayout(config, "language", {.tp = 2, .dp = 2});
  Job job(config);
  TrainSteps(config, job, 0, 1);
  std::vector<StoredPiece> first = CopyAll(config, job);
  const std::vector<std::string> values = ValuesOf(first);
  TrainSteps(config, job, 1, 2);
  const std::vector<StoredPiece> second = CopyAll(config, job);
  CHECK(ValuesOf(first) == values);
  CHECK(ValuesOf(second) != values);
  const std::byte* const memory = first.front().piece.value.data();
  first.clear();
  TrainSteps(config, job, 2, 3);
  CHECK(CopyAll(config, job).front().piece.value.data() == memory);  // used again
}

TEST_CASE("training goes on with key/value heads that ranks share, and with frozen layers",
          "[torch]") {
  Config config = SmallConfig();
  ModuleOf(config, "vision").frozen = true;
  SetLayout(config, "vision", {.tp = 2, .pp = 2, .dp = 2});
  SetLayout(config, "language", {.tp = 4, .dp = 2});
  RequireSameAfterInterruption(config);
}

TEST_CASE("training goes on where replicas divide the state, in instances too", "[torch]") {
  Config config = SmallConfig();
  config.run.precision = GENERATE(Precision::kFloat64, Precision::kBFloat16);
  config.optimizer.shard = OptimizerShard::kData;
  config.optimizer.instances = GENERATE(1, 2);
  ModuleOf(config, "language").As<LlamaConfig>().tied_head = true;
  SetLayout(config, "vision", {.dp = 4});
  SetLayout(config, "language", {.pp = 2, .dp = 4});
  RequireSameAfterInterruption(config);
}

TEST_CASE("a run goes on in bfloat16 from a checkpoint in float32, and back", "[torch]") {
  const bool first_short = GENERATE(false, true);
  Config before = SmallConfig();
  before.run.precision = first_short ? Precision::kBFloat16 : Precision::kFloat32;
  if (GENERATE(false, true)) {  // replicas divide the state
    before.optimizer.shard = OptimizerShard::kData;
    for (const char* module : {"vision", "language"}) SetLayout(before, module, {.dp = 2});
  }
  Config after = before;
  after.run.precision = first_short ? Precision::kFloat32 : Precision::kBFloat16;
  const TemporaryDirectory directory;
  Job one(before);
  TrainSteps(before, one, 0, 2);
  Save(before, one, directory.File("run"), 2);
  Job other(after);
  Restore(after, other, directory.File("run"));
  // All bits of the state survive; only what is multiplied by is rounded, or no longer.
  CHECK((StateOf(other) == StateOf(one)));
  const Inputs inputs = MakeInputs(before, {1, 0, 2}, 7);
  const double loss = one.Evaluate(inputs).loss;
  CHECK(other.Evaluate(inputs).loss == Approx(loss).epsilon(5e-3));
  CHECK(other.Evaluate(inputs).loss != loss);
}

TEST_CASE("an inline encoder is restored with the stage it runs in", "[torch]") {
  Config config = SmallConfig();
  ModuleConfig& vision = ModuleOf(config, "vision");
  vision.inline_in = "language";
  vision.ranks.clear();
  SetLayout(config, "language", {.tp = 2, .pp = 2});
  RequireSameAfterInterruption(config);
}

TEST_CASE("tensors are not set under a pass in flight, and gradients never", "[torch]") {
  const Config config = SmallConfig();
  Job job(config);
  StageProgram& vision = job.Program("vision");
  const auto parameters = vision.Tensors(TensorKind::kParameter);
  CHECK_THROWS_WITH(vision.SetTensors(TensorKind::kGradient, {}),
                    "vision.s0 dp0 rank 0: expected parameters or moments to set, got gradients");
  vision.SetTensors(TensorKind::kParameter, parameters);
  const auto data = std::make_shared<const Inputs>(MakeInputs(config, {1}, 3));
  vision.Forward({.unit = 3, .train = true, .inputs = {}, .data = data});
  CHECK_THROWS_WITH(vision.SetTensors(TensorKind::kParameter, parameters),
                    "vision.s0 dp0 rank 0: change of tensors while unit 3 awaits its backward");
}

TEST_CASE("every layout goes on from the checkpoint of another", "[torch]") {
  Config before = SmallConfig();
  before.run.precision = Precision::kFloat64;
  ModuleOf(before, "language").As<LlamaConfig>().tied_head = GENERATE(false, true);
  Config after = before;
  SetLayout(before, "vision", {.tp = 2, .dp = 2});
  SetLayout(before, "language", {.tp = 2, .pp = 2, .dp = 2});
  const int layout = GENERATE(0, 1, 2, 3);
  CAPTURE(layout);
  switch (layout) {
    case 0:
      SetLayout(after, "vision", {.pp = 2});
      break;
    case 1:
      SetLayout(after, "vision", {.dp = 3});
      SetLayout(after, "language", {.tp = 4, .dp = 3});
      break;
    case 2:  // replicas divide the state
      after.optimizer.shard = OptimizerShard::kData;
      SetLayout(after, "vision", {.dp = 3});
      SetLayout(after, "language", {.pp = 2, .dp = 3});
      break;
    case 3: {
      ModuleConfig& vision = ModuleOf(after, "vision");
      vision.inline_in = "language";
      vision.ranks.clear();
      SetLayout(after, "language", {.tp = 2, .pp = 2});
      break;
    }
  }
  if (GENERATE(false, true)) std::swap(before, after);
  const TemporaryDirectory directory;
  Job first(before);
  TrainSteps(before, first, 0, 2);
  Save(before, first, directory.File("run"), 2);
  after.run.seed += 1;
  Job second(after);
  Restore(after, second, directory.File("run"));
  CHECK((StateOf(second) == StateOf(first)));  // bit for bit
  TrainSteps(before, first, 2, 4);
  TrainSteps(after, second, 2, 4);
  std::vector<Whole> expected = StateOf(first);
  std::vector<Whole> state = StateOf(second);
  for (std::size_t kind = 0; kind < expected.size(); ++kind) {
    INFO("kind " << kind);
    for (Whole* const whole : {&expected[kind], &state[kind]}) {  // whose gradient is rounding
      std::erase_if(*whole,
                    [](const auto& tensor) { return tensor.first.ends_with("k_proj.bias"); });
    }
    CHECK(Difference(state[kind], expected[kind]) <= 1e-10);
  }
}

}  // namespace
TEST_CASE("a replica copies for its mirror what the first shard with that state stores",
          "[torch][checkpoint]") {
  constexpr int kReplicas = 4;
  Config config = SmallConfig();
  config.run.precision = GENERATE(Precision::kFloat32, Precision::kBFloat16);
  ModuleOf(config, "language").As<LlamaConfig>().tied_head = true;
  SetLayout(config, "vision", {.tp = 2, .dp = kReplicas});
  SetLayout(config, "language", {.pp = 2, .dp = kReplicas});
  ModuleOf(config, "vision").frozen = GENERATE(false, true);
  const int instances = GENERATE(2, 4);
  config.optimizer.shard = OptimizerShard::kData;
  config.optimizer.instances = instances;
  Job job(config);
  TrainSteps(config, job, 0, 1);
  const auto copy = [&](StageProgram& program) {
    std::promise<void> copied;
    program.CopyState([&](const WorkTimes&) { copied.set_value(); });
    copied.get_future().wait();
    return StoredPieces([&](TensorKind kind) { return program.CopiedTensors(kind); });
  };
  const int parts = kReplicas / instances;
  ForEachShard(config, job, [&](StageProgram& replica, const ShardAddress& shard) {
    if (shard.dp < parts) return;
    ShardAddress first = shard;
    first.dp = shard.dp % parts;
    INFO(ToString(shard) << " for " << ToString(first));
    CHECK(copy(replica).empty());  // it stores nothing itself
    replica.PrepareCopies(&first);
    const auto made = copy(replica);
    const auto stored = copy(job.Program(first.module, first.pp, first.dp, first.tp));
    REQUIRE(made.size() == stored.size());
    CHECK((first.dp > 0 || !stored.empty()));
    CHECK((ValuesOf(made) == ValuesOf(stored)));
    for (std::size_t i = 0; i < made.size(); ++i) {
      CHECK(made[i].kind == stored[i].kind);
      CHECK(SamePlace(made[i].piece, stored[i].piece));
    }
  });
}

}  // namespace troupe
