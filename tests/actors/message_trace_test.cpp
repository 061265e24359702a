// What a whole job leaves in its trace: every message, who caused it, and the work it led to.
#include <map>
#include <optional>
#include <set>

#include <catch2/catch.hpp>

#include "tests/actors/job_fixture.hpp"

namespace troupe {
namespace {

const std::string& TypeOf(const RunTrace& trace, const TraceMessage& message) {
  return trace.types[static_cast<std::size_t>(message.type)];
}
std::string NameOf(const RunTrace& trace, int actor) {
  return actor < 0 ? "" : trace.actors[static_cast<std::size_t>(actor)].name;
}

}  // namespace

TEST_CASE_METHOD(JobFixture, "every message of a job is noted once, with what caused it",
                 "[actors]") {
  REQUIRE(Run(TwoModules(), TrainingRounds(2, 3)).failure.empty());
  const RunTrace& run = Trace();
  std::map<std::string, int> counts;
  for (const TraceMessage& message : run.messages) {
    const std::string& type = TypeOf(run, message);
    INFO(type << " from " << NameOf(run, message.sender) << " to "
              << NameOf(run, message.receiver));
    ++counts[type];
    CHECK(message.begin_ns >= message.arrived_ns);
    CHECK(message.end_ns >= message.begin_ns);
    CHECK(message.receiver >= 0);
    if (type == "RunJob") continue;  // from outside
    REQUIRE(message.cause >= 0);
    const TraceMessage& cause = run.messages[static_cast<std::size_t>(message.cause)];
    CHECK(cause.receiver == message.sender);
    CHECK(cause.begin_ns <= message.sent_ns);
    CHECK(message.sent_ns <= cause.end_ns);
  }
  // 2 rounds of 3 microbatches: 2 encoder replicas and a language model, each with one device. To
  // or from the lock step, and to or from the device.
  for (const char* type : {"RunForward", "ForwardDone", "RunBackward", "BackwardDone"}) {
    INFO(type);
    CHECK(counts[type] == 2 * (2 * 3 * 3));
  }
  CHECK(counts["Slice"] == 2 * 3 * 2);
  CHECK(counts["GradientSlice"] == 2 * 3 * 2);
  CHECK(counts["Activation"] == 2 * 3 * 3);  // two into the boundary, one out of it
  CHECK(counts["Gradient"] == 2 * 3 * 3);
  CHECK(counts["RoundBegin"] == counts["StageReport"] + 2 * 2);  // feeds do not answer
}

TEST_CASE_METHOD(JobFixture, "messages say of which round, microbatch and edge they are",
                 "[actors]") {
  REQUIRE(Run(TwoModules(), TrainingRounds(2, 3)).failure.empty());
  const RunTrace& run = Trace();
  std::map<std::pair<std::int64_t, std::int64_t>, int> slices;
  for (const TraceMessage& message : run.messages) {
    if (TypeOf(run, message) != "Slice") continue;
    ++slices[{message.round, message.unit}];
    REQUIRE(message.link >= 0);
    CHECK(run.links[static_cast<std::size_t>(message.link)].name == "vision>language");
    CHECK(message.bytes > 0);
    CHECK(message.credits >= 0);
    CHECK(message.credits < 8);  // SyntheticConfigOf gives an edge 8 credits
  }
  CHECK(slices.size() == 6);
  for (const auto& [key, count] : slices) {
    CHECK(key.first == key.second / 3);
    CHECK(count == 2);
  }
}

TEST_CASE_METHOD(JobFixture, "all work belongs to the message that asked for it", "[actors]") {
  REQUIRE(Run(TwoModules(), TrainingRounds(2, 3)).failure.empty());
  const RunTrace& run = Trace();
  CHECK(run.work.size() == 3 * (2 * 3 * 2 + 2 * 2));
  for (const TraceWork& work : run.work) {
    REQUIRE(work.message >= 0);
    const TraceMessage& asked = run.messages[static_cast<std::size_t>(work.message)];
    CHECK(NameOf(run, asked.receiver) == "device " + std::to_string(work.pass.rank));
    CHECK(asked.begin_ns <= work.pass.begin_ns);
    CHECK(work.pass.end_ns <= asked.end_ns);
  }
}

TEST_CASE_METHOD(JobFixture, "every message that begins or ends a round has its training step",
                 "[actors]") {
  // As a run that goes on after step 6: evaluations in rounds 0 and 3.
  const auto rounds = [](std::int64_t number) -> std::optional<Round> {
    if (number >= 5) return std::nullopt;
    const bool train = number % 3 != 0;
    return Round{number, train, number < 3 ? 5 + number : 4 + number, 2, 1.0};
  };
  REQUIRE(Run(TwoModules(), rounds).failure.empty());
  std::map<std::string, std::map<std::int64_t, std::set<std::int64_t>>> said;  // type, round: steps
  for (const TraceMessage& message : Trace().messages) {
    if (message.step >= 0) said[TypeOf(Trace(), message)][message.round].insert(message.step);
  }
  using Steps = std::map<std::int64_t, std::set<std::int64_t>>;
  CHECK(said["RoundBegin"] == Steps{{0, {0}}, {1, {7}}, {2, {8}}, {3, {0}}, {4, {9}}});
  for (const char* type : {"UpdateRound", "UpdateParameters"}) {
    INFO(type);
    CHECK(said[type] == Steps{{1, {7}}, {2, {8}}, {4, {9}}});
  }
  CHECK(said.size() == 3);
}

TEST_CASE_METHOD(JobFixture, "all work says what memory was in use when it ended", "[actors]") {
  /// 12 KiB more whenever it is asked, and then more than a record has room for.
  struct Growing : MemoryMeter {
    std::int64_t asked = 0;
    MemoryUse UseOf(int) override {
      return {.in_use_bytes = ++asked < 49 ? 12 * 1024 * asked + 5 : std::int64_t{1} << 60};
    }
  };
  memory = std::make_shared<Growing>();
  REQUIRE(Run(TwoModules(), TrainingRounds(2, 3)).failure.empty());
  std::map<std::int64_t, int> said;
  for (const TraceWork& work : Trace().work) ++said[work.memory.in_use_bytes];
  REQUIRE(Trace().work.size() == 48);
  CHECK(said.size() == 48);
  CHECK(said.begin()->first == 12 * 1024);
  CHECK(said.rbegin()->first == 12 * 1024 * 48);

  REQUIRE(Run(TwoModules(), TrainingRounds(1, 1)).failure.empty());
  for (const TraceWork& work : Trace().work) CHECK(work.memory.in_use_bytes == 0xFFFFFFFF * 1024LL);
  memory.reset();
  REQUIRE(Run(TwoModules(), TrainingRounds(1, 1)).failure.empty());
  for (const TraceWork& work : Trace().work) CHECK(work.memory.in_use_bytes == 0);
}

TEST_CASE_METHOD(JobFixture, "all work has its reserved memory, the peak, and the GPU",
                 "[actors]") {
  /// Something else of every rank.
  struct Ranks : MemoryMeter {
    MemoryUse UseOf(int rank) override {
      return {(rank + 1) * 4096, (rank + 1) * 65536, (rank + 1) * 8192};
    }
  };
  memory = std::make_shared<Ranks>();
  REQUIRE(Run(TwoModules(), TrainingRounds(1, 2)).failure.empty());
  for (const TraceWork& work : Trace().work) {
    const std::int64_t rank = work.pass.rank;
    CHECK(work.memory == WorkMemory{(rank + 1) * 4096, (rank + 1) * 65536, (rank + 1) * 8192,
                                    WorkMemory::kOfProcess});
  }
  gpu_of = [](int rank) { return rank / 2; };
  REQUIRE(Run(TwoModules(), TrainingRounds(1, 2)).failure.empty());
  std::set<int> gpus;
  for (const TraceWork& work : Trace().work) {
    CHECK(work.memory.gpu == work.pass.rank / 2);
    gpus.insert(work.memory.gpu);
  }
  CHECK(gpus.size() > 1);
  memory.reset();
  REQUIRE(Run(TwoModules(), TrainingRounds(1, 2)).failure.empty());
  for (const TraceWork& work : Trace().work) CHECK(work.memory == WorkMemory{});
}

}  // namespace troupe
