#include <array>
#include <atomic>

#include <catch2/catch.hpp>

#include "tests/transport/crew.hpp"
#include "transport/communicator.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

struct NamedOperation {
  const char* name;
  std::function<void(Communicator&)> run;
};

/// Every operation, small (staged) and large (on the members' own memory).
std::vector<NamedOperation> AllOperations() {
  std::vector<NamedOperation> all = {{"barrier", [](Communicator& g) { g.Barrier(); }}};
  for (const std::int64_t count : {2, 20000}) {
    const auto bytes = static_cast<std::size_t>(count) * 4;
    const auto room = [count](Communicator& g) {
      return std::vector<float>(static_cast<std::size_t>(count * g.size()), 1.0F);
    };
    all.push_back({"broadcast", [=](Communicator& g) { g.Broadcast(room(g).data(), bytes, 1); }});
    all.push_back({"all-reduce", [=](Communicator& g) {
                     g.AllReduce(room(g).data(), count, DType::kFloat32, ReduceOp::kSum);
                   }});
    all.push_back({"all-gather",
                   [=](Communicator& g) { g.AllGather(room(g).data(), bytes, room(g).data()); }});
    all.push_back({"reduce-scatter", [=](Communicator& g) {
                     g.ReduceScatter(room(g).data(), count, DType::kFloat32, ReduceOp::kSum,
                                     room(g).data());
                   }});
    all.push_back({"all-to-all", [=](Communicator& g) {
                     const std::vector<std::size_t> sizes(static_cast<std::size_t>(g.size()),
                                                          bytes);
                     g.AllToAll(room(g).data(), sizes, room(g).data(), sizes);
                   }});
  }
  return all;
}

}  // namespace

TEST_CASE("an abort ends every operation of members that wait and of members that come later") {
  for (const NamedOperation& operation : AllOperations()) {
    const auto abort = std::make_shared<AbortSignal>();
    std::atomic<int> waiting = 0;
    const auto outcomes = RunGroup(
        4,
        [&](Communicator& group) {
          operation.run(group);
          if (group.rank() == 3) {
            while (waiting < 3) std::this_thread::yield();
            abort->Raise("module vision, rank 7: loss is not finite");
          }
          ++waiting;
          operation.run(group);
        },
        abort);
    INFO(operation.name);
    CHECK(outcomes == All(4, "aborted: module vision, rank 7: loss is not finite"));
  }
}

TEST_CASE("an abort in the middle of traffic ends all members, none with wrong data") {
  for (const NamedOperation& operation : AllOperations()) {
    const auto abort = std::make_shared<AbortSignal>();
    std::atomic<int> rounds = 0;
    std::thread raiser([&] {
      while (rounds < 40) std::this_thread::yield();
      abort->Raise("stop");
    });
    const auto outcomes = RunGroup(
        3,
        [&](Communicator& group) {
          for (;;) {
            operation.run(group);
            ++rounds;
          }
        },
        abort);
    raiser.join();
    INFO(operation.name);
    CHECK(outcomes == All(3, "aborted: stop"));
  }
}

TEST_CASE("a group of one does not start anything after an abort either") {
  const auto abort = std::make_shared<AbortSignal>();
  abort->Raise("stop");
  for (const NamedOperation& operation : AllOperations())
    if (std::string(operation.name) != "broadcast")
      CHECK(RunGroup(1, operation.run, abort) == All(1, "aborted: stop"));
}

TEST_CASE("when a member is gone the others throw and name it, whatever they call") {
  for (const NamedOperation& operation : AllOperations()) {
    const auto outcomes = RunGroup(3, [&](Communicator& group) {
      operation.run(group);
      if (group.rank() != 1) operation.run(group);
    });
    const std::string gone = "aborted: local group of 3: member 1 left before this call";
    INFO(operation.name);
    CHECK(outcomes == std::vector<std::string>{gone, "ok", gone});
  }
}

TEST_CASE("members may go while others still return from the last operation") {
  for (int round = 0; round < 200; ++round)
    REQUIRE(RunGroup(4, [](Communicator& group) { group.Barrier(); }) == All(4, "ok"));
}

TEST_CASE("different calls are reported to all members, with both of them named") {
  std::vector<float> data(20000 * 4);
  const auto outcome_of = [](const std::function<void(Communicator&)>& odd) {
    const auto outcomes = RunGroup(3, [&](Communicator& group) {
      std::vector<float> own(20000 * 3);
      if (group.rank() == 2) return odd(group);
      group.AllReduce(own.data(), 20000, DType::kFloat32, ReduceOp::kSum);
    });
    CHECK(outcomes == All(3, outcomes[0]));
    return outcomes[0];
  };
  const std::string start =
      "logic error: local group of 3: member 0 called all-reduce of 20000 float32 (sum), "
      "member 2 called ";
  CHECK(outcome_of([&](Communicator& g) { g.Barrier(); }) == start + "barrier");
  CHECK(outcome_of([&](Communicator& g) { g.Broadcast(data.data(), 48, 1); }) ==
        start + "broadcast of 48 bytes from member 1");
  CHECK(outcome_of([&](Communicator& g) {
          g.AllReduce(data.data(), 3, DType::kFloat32, ReduceOp::kSum);
        }) == start + "all-reduce of 3 float32 (sum)");
  CHECK(outcome_of([&](Communicator& g) {
          g.AllReduce(data.data(), 20000, DType::kInt32, ReduceOp::kSum);
        }) == start + "all-reduce of 20000 int32 (sum)");
  CHECK(outcome_of([&](Communicator& g) {
          g.AllReduce(data.data(), 20000, DType::kFloat32, ReduceOp::kMax);
        }) == start + "all-reduce of 20000 float32 (max)");
  CHECK(outcome_of([&](Communicator& g) {
          g.ReduceScatter(data.data(), 20000, DType::kFloat32, ReduceOp::kSum, data.data());
        }) == start + "reduce-scatter of 20000 float32 (sum)");
  CHECK(outcome_of([&](Communicator& g) { g.AllGather(data.data(), 80, data.data() + 100); }) ==
        start + "all-gather of 80 bytes");
  CHECK(outcome_of([&](Communicator& g) {
          const std::array<std::size_t, 3> none = {0, 0, 0};
          g.AllToAll(nullptr, none, nullptr, none);
        }) == start + "all-to-all");
}

TEST_CASE("broadcasts from different roots do not match") {
  const auto outcomes = RunGroup(3, [](Communicator& group) {
    int value = group.rank();
    group.Broadcast(&value, sizeof(value), group.rank() == 1 ? 1 : 0);
  });
  CHECK(outcomes == All(3,
                        "logic error: local group of 3: member 0 called broadcast of 4 bytes from "
                        "member 0, member 1 called broadcast of 4 bytes from member 1"));
}

TEST_CASE("illegal arguments of one member are reported to all, and none hangs") {
  const auto outcome_of = [](const std::function<void(Communicator&)>& odd) {
    const auto outcomes = RunGroup(2, [&](Communicator& group) {
      if (group.rank() == 1) return odd(group);
      group.Barrier();
    });
    CHECK(outcomes == All(2, outcomes[0]));
    return outcomes[0];
  };
  const std::string start = "invalid argument: local group of 2: member 1: ";
  CHECK(outcome_of([](Communicator& g) { g.Broadcast(nullptr, 0, 2); }) ==
        start + "broadcast: expected a root in [0, 2), got 2");
  CHECK(outcome_of([](Communicator& g) {
          g.AllReduce(nullptr, -1, DType::kInt64, ReduceOp::kMax);
        }) == start + "all-reduce of -1 int64 (max): expected a count of at least 0");
  CHECK(outcome_of([](Communicator& g) {
          g.ReduceScatter(nullptr, -2, DType::kInt64, ReduceOp::kSum, nullptr);
        }) == start + "reduce-scatter of -2 int64 (sum): expected a count of at least 0");
  const std::array<std::size_t, 3> three = {0, 0, 0};
  const std::array<std::size_t, 2> two = {0, 0};
  CHECK(outcome_of([&](Communicator& g) { g.AllToAll(nullptr, three, nullptr, two); }) ==
        start + "all-to-all: expected 2 send sizes, got 3");
  CHECK(outcome_of([&](Communicator& g) { g.AllToAll(nullptr, two, nullptr, three); }) ==
        start + "all-to-all: expected 2 receive sizes, got 3");
}

TEST_CASE("an all-to-all whose sizes disagree is refused, and the group remains usable") {
  const auto outcomes = RunGroup(3, [](Communicator& group) {
    const std::array<std::size_t, 3> four = {4, 4, 4};
    const std::array<std::size_t, 3> odd = {4, 4, 3};
    std::array<int, 3> data = {};
    std::array<int, 3> output = {};
    const std::string outcome = OutcomeOf(
        [&] { group.AllToAll(data.data(), four, output.data(), group.rank() == 1 ? odd : four); });
    group.Barrier();
    throw std::runtime_error(outcome);
  });
  CHECK(outcomes == All(3,
                        "unexpected: invalid argument: local group of 3: all-to-all: member 2 "
                        "sends 4 bytes to member 1, which expects 3"));
}
