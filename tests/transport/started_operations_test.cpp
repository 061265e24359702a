#include "transport/started_operations.hpp"

#include <atomic>
#include <random>
#include <utility>

#include <catch2/catch.hpp>

#include "tests/transport/known_operations.hpp"
#include "tests/transport/spanning_crew.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

using Homes = std::vector<ProcessId>;
using Values = std::vector<double>;

std::vector<std::unique_ptr<Communicator>> Alone(std::unique_ptr<Communicator> group) {
  std::vector<std::unique_ptr<Communicator>> groups;
  groups.push_back(std::move(group));
  return groups;
}

/// Every operation is started, and waited for at once.
class StartAndWait final : public Communicator {
 public:
  explicit StartAndWait(std::unique_ptr<Communicator> group)
      : rank_(group->rank()), size_(group->size()), started_(Alone(std::move(group))) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void Run(const Collective& mine) override { started_.Wait(started_.Start(0, mine)); }

 private:
  int rank_;
  int size_;
  StartedOperations started_;
};

/// Lends a member's view for as long as a StartedOperations lives.
class Lent final : public Communicator {
 public:
  explicit Lent(Communicator& group) : group_(group) {}
  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  void Run(const Collective& mine) override { group_.Run(mine); }

 private:
  Communicator& group_;
};

Values ValuesOf(int member, std::int64_t salt, std::int64_t count) {
  return Known<double>::Of({.salt = salt}, member, 0, count);
}

void Expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

/// Starts many sums and passes round the ring before it waits for the first, then waits in an order
/// of the member's own.
void RunMany(Communicator& group, unsigned seed) {
  constexpr std::int64_t kOperations = 40;
  StartedOperations started(Alone(std::make_unique<Lent>(group)));
  const int rank = group.rank();
  const int size = group.size();
  const auto count_of = [](std::int64_t i, int member) { return i * i * 7 % 3000 + member; };
  struct Operation {
    StartedOperations::Number number;
    Values input;
    Values output;
    Values expected;
  };
  std::vector<Operation> operations(kOperations);
  for (std::int64_t i = 0; i < kOperations; ++i) {
    Operation& operation = operations[static_cast<std::size_t>(i)];
    if (i % 2 == 0) {
      const std::int64_t count = count_of(i, 0);
      const KnownOperation known{.count = count, .salt = i};
      operation.output = ValuesOf(rank, i, count);
      operation.expected = Known<double>::Reduced(known, size, 0, count);
      operation.number = started.Start(0, Collective::AllReduce(operation.output.data(), count,
                                                                DType::kFloat64, ReduceOp::kSum));
    } else {
      const int before = (rank + size - 1) % size;
      operation.input = ValuesOf(rank, i, count_of(i, rank));
      operation.expected = ValuesOf(before, i, count_of(i, before));
      operation.output.resize(operation.expected.size());
      const RingSizes sizes = RingSizesOf(rank, size, operation.input.size() * sizeof(double),
                                          operation.output.size() * sizeof(double));
      operation.number =
          started.Start(0, Collective::AllToAll(operation.input.data(), sizes.send_bytes,
                                                operation.output.data(), sizes.receive_bytes));
    }
  }
  std::mt19937 random(seed + static_cast<unsigned>(rank));
  std::ranges::shuffle(operations, random);
  for (const Operation& operation : operations) {
    started.Wait(operation.number);
    Expect(operation.output == operation.expected,
           "operation " + std::to_string(operation.number) + " is wrong");
  }
  started.Wait(kOperations);
}

}  // namespace

TEST_CASE("every operation can be started and waited for") {
  for (int size = 1; size <= 5; ++size) {
    for (const std::int64_t count : {0, 1, 3000}) {
      const auto abort = std::make_shared<AbortSignal>();
      const auto outcomes = RunGroup(
          size,
          [&](Communicator& group) {
            StartAndWait started(std::make_unique<Lent>(group));
            for (int kind = 0; kind < KnownOperation::kNumKinds; ++kind) {
              Known<double>::Run(started, DType::kFloat64,
                                 {kind, count, kind, kind % size, ReduceOp::kSum});
            }
          },
          abort);
      INFO("size " << size << ", count " << count);
      REQUIRE(outcomes == All(size, "ok"));
    }
  }
}

TEST_CASE("many operations are under way, and are waited for in any order") {
  for (int size = 1; size <= 5; ++size) {
    REQUIRE(RunGroup(size, [](Communicator& group) { RunMany(group, 1); }) == All(size, "ok"));
  }
  unsigned seed = 0;
  for (const Homes& homes : {Homes{0, 1}, Homes{0, 0, 1, 1}, Homes{0, 1, 2, 1}}) {
    REQUIRE(RunSpanning(homes, [&](Communicator& group) { RunMany(group, 7); }, {.seed = ++seed}) ==
            All(static_cast<int>(homes.size()), "ok"));
  }
}

TEST_CASE("what is passed on goes once around the ring") {
  for (const Homes& homes : {Homes{0}, Homes{0, 0, 0}, Homes{0, 1, 0, 2}}) {
    const auto outcomes = RunSpanning(homes, [](Communicator& group) {
      const int size = group.size();
      const auto length_of = [](int origin) { return static_cast<std::size_t>(origin * 300); };
      Values block = ValuesOf(group.rank(), 0, group.rank() * 300);
      for (int step = 1; step <= size; ++step) {
        const int origin = (group.rank() + size * 2 - step) % size;
        Values next(length_of(origin));
        group.PassOn(block.data(), block.size() * sizeof(double), next.data(),
                     next.size() * sizeof(double));
        Expect(next == ValuesOf(origin, 0, origin * 300), "another block arrived");
        block = std::move(next);
      }
    });
    REQUIRE(outcomes == All(static_cast<int>(homes.size()), "ok"));
  }
}

TEST_CASE("a start returns before the other members have come") {
  std::atomic<bool> first_has_started = false;
  const auto outcomes = RunGroup(2, [&](Communicator& group) {
    StartedOperations started(Alone(std::make_unique<Lent>(group)));
    double value = group.rank() + 1.0;
    const Collective sum = Collective::AllReduce(&value, 1, DType::kFloat64, ReduceOp::kSum);
    if (group.rank() == 1) first_has_started.wait(false);
    const auto number = started.Start(0, sum);
    if (group.rank() == 0) {
      first_has_started = true;
      first_has_started.notify_all();
    }
    started.Wait(number);
    Expect(value == 3.0, "wrong sum");
  });
  REQUIRE(outcomes == All(2, "ok"));
}

TEST_CASE("a wait ends with the failure of its operation or of one before it") {
  const auto abort = std::make_shared<AbortSignal>();
  const auto outcomes = RunGroup(
      3,
      [&](Communicator& group) {
        StartedOperations started(Alone(std::make_unique<Lent>(group)));
        double value = 1.0;
        const auto sum = [&] {
          return started.Start(0,
                               Collective::AllReduce(&value, 1, DType::kFloat64, ReduceOp::kSum));
        };
        started.Wait(sum());
        if (group.rank() == 2) {
          abort->Raise("a test");
          return;
        }
        sum();
        started.Wait(sum());
      },
      abort);
  REQUIRE(outcomes == std::vector<std::string>{"aborted: a test", "aborted: a test", "ok"});
}

TEST_CASE("members whose operations differ get an error that names both") {
  const auto outcomes = RunGroup(2, [](Communicator& group) {
    StartedOperations started(Alone(std::make_unique<Lent>(group)));
    double value = 1.0;
    started.Wait(
        group.rank() == 0
            ? started.Start(0, {})
            : started.Start(0, Collective::AllReduce(&value, 1, DType::kFloat64, ReduceOp::kSum)));
  });
  for (const std::string& outcome : outcomes) {
    REQUIRE(outcome.find("logic error") == 0);
    REQUIRE(outcome.find("all-reduce") != std::string::npos);
  }
}

TEST_CASE("what was started runs to its end, in and between processes, without a wait") {
  for (const Homes& homes : {Homes{0, 0, 0}, Homes{0, 1, 2}}) {
    std::vector<Values> sums(homes.size());
    const auto outcomes = RunSpanning(homes, [&](Communicator& group) {
      Values& mine = sums[static_cast<std::size_t>(group.rank())];
      mine.assign(50, group.rank() + 1.0);
      StartedOperations started(Alone(std::make_unique<Lent>(group)));
      for (double& value : mine) {
        started.Start(0, Collective::AllReduce(&value, 1, DType::kFloat64, ReduceOp::kSum));
      }
    });
    REQUIRE(outcomes == All(3, "ok"));
    for (const Values& mine : sums) CHECK(mine == Values(50, 6.0));
  }
}

TEST_CASE("a member that leaves ends the waits of the others") {
  const auto abort = std::make_shared<AbortSignal>();
  auto members = MakeLocalGroup(2, abort);
  const Watchdog watchdog(abort);
  std::string outcome;
  std::thread stays([&outcome, member = std::move(members[0])]() mutable {
    StartedOperations started(Alone(std::move(member)));
    double value = 1.0;
    const Collective sum = Collective::AllReduce(&value, 1, DType::kFloat64, ReduceOp::kSum);
    for (int i = 0; i < 10; ++i) started.Start(0, sum);
    outcome = OutcomeOf([&] { started.Wait(10); });
  });
  std::thread([member = std::move(members[1])]() mutable {
    StartedOperations started(Alone(std::move(member)));
    double value = 1.0;
    started.Wait(
        started.Start(0, Collective::AllReduce(&value, 1, DType::kFloat64, ReduceOp::kSum)));
  }).join();
  stays.join();
  REQUIRE(outcome.find("aborted: ") == 0);
}
