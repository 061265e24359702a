// Checkpoints that are written while a job goes on hold the state of one step, whatever the order
// in which messages arrive.
#include <map>
#include <utility>

#include <catch2/catch.hpp>

#include "tests/actors/job_fixture.hpp"

namespace troupe {
namespace {

/// By step, shard and kind: the values that were saved.
using SavedValues = std::map<std::int64_t, std::map<std::pair<std::string, TensorKind>, double>>;

class SavingFixture : public JobFixture {
 public:
  SavingFixture() {
    checkpoints.every = 2;
    checkpoints.folder = [](std::int64_t steps) {
      return "/run/checkpoints/step " + std::to_string(steps);
    };
    checkpoints.manifest = [](std::int64_t, const std::vector<SavedShard>& shards) {
      CHECK(shards.size() == 3);
      return "the manifest";
    };
    checkpoints.completed = [this](std::int64_t steps) {
      CHECK(published.back() == "/run/checkpoints/step " + std::to_string(steps));
      CHECK(saved[steps].size() == 2);  // parameters of two modules, by the first replica
      complete.push_back(steps);
    };
    storage.save = [this](const std::vector<StoredPiece>& pieces, const ShardAddress& shard,
                          const SaveOrder& order) {
      for (const auto& [kind, piece] : pieces) {
        saved[order.step][{shard.module, kind}] = *piece.value.as<double>();
      }
      return StoredShard{};
    };
  }

  SavedValues saved;
  std::vector<std::int64_t> complete;
};

}  // namespace

TEST_CASE_METHOD(SavingFixture, "an asynchronous checkpoint equals a synchronous one", "[actors]") {
  if (GENERATE(false, true)) UseQueues();
  REQUIRE(Run(TwoModules(), TrainingRounds(7, 3)).failure.text == "");
  const SavedValues expected = std::exchange(saved, {});
  CHECK(complete == std::vector<std::int64_t>{2, 4, 6});
  checkpoints.async = true;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    complete.clear();
    saved.clear();
    REQUIRE(RunShuffled(TwoModules(), TrainingRounds(7, 3), seed).failure.text == "");
    // One that is still being written delays the next by a step or more.
    REQUIRE(complete.size() >= 2);
    CHECK(complete.front() == 2);
    for (const auto& [step, values] : expected) {
      if (saved.contains(step)) CHECK(saved.at(step) == values);
    }
  }
}

TEST_CASE_METHOD(SavingFixture,
                 "the trace has the snapshots and writes of asynchronous checkpoints", "[actors]") {
  if (GENERATE(false, true)) UseQueues();
  checkpoints.async = true;
  REQUIRE(Run(TwoModules(), TrainingRounds(5, 3)).failure.text == "");
  CHECK(complete == std::vector<std::int64_t>{2, 4});
  using Counts = std::map<std::pair<std::int64_t, std::int64_t>, int>;
  const auto count = [](const std::vector<TraceWork>& all, WorkKind kind) {
    Counts counts;
    for (const TraceWork& work : all) {
      if (work.pass.kind == kind) ++counts[{work.pass.unit, work.pass.round}];
    }
    return counts;
  };
  const Counts expected = {{{2, 2}, 3}, {{4, 4}, 3}};  // by step and the round after; from 0
  CHECK(count(Trace().work, WorkKind::kSnapshot) == expected);
  CHECK(count(Trace().concurrent, WorkKind::kCheckpointWrite) == expected);
  CHECK(count(Trace().work, WorkKind::kCheckpoint).empty());
}

}  // namespace troupe
