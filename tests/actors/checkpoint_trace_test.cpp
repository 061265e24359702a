// Writing a checkpoint is work in the trace, of the devices that write it.
#include <map>
#include <stdexcept>
#include <utility>

#include <catch2/catch.hpp>

#include "tests/actors/job_fixture.hpp"

namespace troupe {
namespace {

/// A job that writes a checkpoint after every second of its steps.
class CheckpointFixture : public JobFixture {
 public:
  CheckpointFixture() {
    checkpoints.every = 2;
    checkpoints.folder = [](std::int64_t steps) {
      return "/run/checkpoints/step " + std::to_string(steps);
    };
    checkpoints.manifest = [](std::int64_t, const std::vector<SavedShard>&) { return ""; };
    checkpoints.completed = [](std::int64_t) {};
    storage.save = [](const std::vector<StoredPiece>&, const ShardAddress&, const SaveOrder&) {
      return StoredShard{};
    };
  }

  /// Pieces of such work by what they say: the step they are of, the round that waits for them.
  std::map<std::pair<std::int64_t, std::int64_t>, int> Written() const {
    std::map<std::pair<std::int64_t, std::int64_t>, int> counts;
    for (const TraceWork& work : Trace().work) {
      if (work.pass.kind != WorkKind::kCheckpoint) continue;
      ++counts[{work.pass.unit, work.pass.round}];
      REQUIRE(work.message >= 0);
      const TraceMessage& command = Trace().messages[static_cast<std::size_t>(work.message)];
      CHECK(Trace().types[static_cast<std::size_t>(command.type)] == "SaveShard");
      CHECK(command.round == work.pass.round);
      CHECK(command.begin_ns <= work.pass.begin_ns);
    }
    return counts;
  }
};

}  // namespace

TEST_CASE_METHOD(CheckpointFixture,
                 "every shard of a checkpoint is work before the round that waits for it",
                 "[actors]") {
  if (GENERATE(false, true)) UseQueues();
  REQUIRE(Run(TwoModules(), TrainingRounds(5, 3)).failure.text == "");
  CHECK(published ==
        std::vector<std::string>{"/run/checkpoints/step 2", "/run/checkpoints/step 4"});
  // Rounds count from 0.
  CHECK(Written() ==
        std::map<std::pair<std::int64_t, std::int64_t>, int>{{{2, 2}, 3}, {{4, 4}, 3}});
  std::int64_t written_ns = 0;
  std::int64_t next_ns = 0;
  for (const TraceWork& work : Trace().work) {
    if (work.pass.round != 2) continue;
    if (work.pass.kind == WorkKind::kCheckpoint) {
      written_ns = std::max(written_ns, work.pass.end_ns);
    } else if (next_ns == 0) {
      next_ns = work.pass.begin_ns;
    }
  }
  CHECK(written_ns <= next_ns);
}

TEST_CASE_METHOD(CheckpointFixture, "the answers to a checkpoint are known as such, with its round",
                 "[actors]") {
  if (GENERATE(false, true)) UseQueues();
  REQUIRE(Run(TwoModules(), TrainingRounds(3, 3)).failure.text == "");
  int answers = 0;
  for (const TraceMessage& message : Trace().messages) {
    if (message.role != MessageRole::kCheckpoint) continue;
    CHECK(message.round == 2);
    const auto kind = [&](int actor) {
      return Trace().actors[static_cast<std::size_t>(actor)].id.kind;
    };
    answers += kind(message.receiver) == ActorKind::kDirector ? 1 : 0;
    // What a device answers is of its command, also where it had to wait for its queue.
    if (kind(message.sender) != ActorKind::kDevice) continue;
    REQUIRE(message.cause >= 0);
    const TraceMessage& cause = Trace().messages[static_cast<std::size_t>(message.cause)];
    CHECK(Trace().types[static_cast<std::size_t>(cause.type)] == "SaveShard");
  }
  CHECK(answers >= 1);
}

TEST_CASE_METHOD(CheckpointFixture, "a shard that cannot be written is named with its step",
                 "[actors]") {
  if (GENERATE(false, true)) UseQueues();
  checkpoints.async = GENERATE(false, true);
  storage.save = [](const std::vector<StoredPiece>&, const ShardAddress& shard,
                    const SaveOrder& order) -> StoredShard {
    if (shard.module == "language") throw std::runtime_error(order.folder + ": the disk is full");
    return {};
  };
  CHECK(Run(TwoModules(), TrainingRounds(3, 3)).failure.text ==
        "language.s0 dp0 rank 2 checkpoint of step 2: /run/checkpoints/step 2: the disk is full");
  CHECK(published.empty());
}

}  // namespace troupe
