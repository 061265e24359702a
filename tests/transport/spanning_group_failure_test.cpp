#include <algorithm>
#include <array>
#include <atomic>
#include <set>

#include <catch2/catch.hpp>

#include "tests/transport/known_operations.hpp"
#include "tests/transport/spanning_crew.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

using Homes = std::vector<ProcessId>;

/// "member 0 waits for ...", one line per member and who it waits for.
std::vector<std::string> TextsOf(const GroupWaits& waits) {
  std::vector<std::string> texts;
  for (const ActorWaits& waiting : waits.List()) {
    for (const Wait& wait : waiting.waits) {
      texts.push_back(waiting.who + " waits for " + ToString(wait));
    }
  }
  return texts;
}

void RunKind(Communicator& group, int kind, std::int64_t count) {
  Known<float>::Run(group, DType::kFloat32, {kind, count, 0, 0, ReduceOp::kSum});
}

/// Member 1 makes `odd`, the others an all-reduce of 20,000 float32. What they all report, without
/// how they got to know it; at least one must have seen it for itself.
std::string ReportOf(const Homes& homes, const std::function<void(Communicator&)>& odd,
                     const std::string& kind = "logic error") {
  const auto outcomes = RunSpanning(homes, [&](Communicator& group) {
    if (group.rank() == 1) return odd(group);
    std::vector<float> own(20000);
    group.AllReduce(own.data(), 20000, DType::kFloat32, ReduceOp::kSum);
  });
  std::set<std::string> kinds;
  std::set<std::string> texts;
  for (const std::string& outcome : outcomes) {
    const std::size_t colon = outcome.find(": ");
    kinds.insert(outcome.substr(0, colon));
    texts.insert(colon == std::string::npos ? outcome : outcome.substr(colon + 2));
  }
  CHECK(kinds.count(kind) == 1);
  kinds.erase(kind);
  kinds.erase("aborted");
  CHECK(kinds == std::set<std::string>());
  return texts.size() == 1 ? *texts.begin() : std::to_string(texts.size()) + " different texts";
}

}  // namespace

TEST_CASE("an abort ends every operation between processes") {
  for (const Homes& homes : {Homes{0, 1, 2}, Homes{0, 1, 0, 1}, Homes{0, 0, 0, 1}})
    for (int kind = 0; kind < KnownOperation::kNumKinds; ++kind)
      for (const std::int64_t count : {3, 400000}) {
        const auto size = static_cast<int>(homes.size());
        SpanningOptions options;
        std::atomic<int> waiting = 0;
        const auto outcomes = RunSpanning(
            homes,
            [&](Communicator& group) {
              RunKind(group, kind, count / 100);
              if (++waiting == size) options.abort->Raise("rank 7: loss is not finite");
              if (group.rank() == size - 1)
                while (!options.abort->raised()) std::this_thread::yield();
              RunKind(group, kind, count);
            },
            options);
        INFO("kind " << kind << ", count " << count << ", size " << size);
        REQUIRE(outcomes == All(size, "aborted: rank 7: loss is not finite"));
      }
}

TEST_CASE("calls that differ between processes end the job with both of them named") {
  const std::string start =
      "group g: member 0 called all-reduce of 20000 float32 (sum), member 1 called ";
  std::vector<float> data(100000);
  const auto report = [](const std::function<void(Communicator&)>& odd) {
    return ReportOf({0, 1}, odd);
  };
  CHECK(report([](Communicator& g) { g.Barrier(); }) == start + "barrier");
  CHECK(report([&](Communicator& g) { g.Broadcast(data.data(), 48, 1); }) ==
        start + "broadcast of 48 bytes from member 1");
  CHECK(report([&](Communicator& g) {
          g.AllReduce(data.data(), 3, DType::kFloat32, ReduceOp::kSum);
        }) == start + "all-reduce of 3 float32 (sum)");
  CHECK(report([&](Communicator& g) {
          g.AllReduce(data.data(), 20001, DType::kFloat32, ReduceOp::kSum);
        }) == start + "all-reduce of 20001 float32 (sum)");
  CHECK(report([&](Communicator& g) {
          g.AllReduce(data.data(), 20000, DType::kInt32, ReduceOp::kSum);
        }) == start + "all-reduce of 20000 int32 (sum)");
  CHECK(report([&](Communicator& g) {
          g.AllReduce(data.data(), 20000, DType::kFloat32, ReduceOp::kMax);
        }) == start + "all-reduce of 20000 float32 (max)");
  CHECK(report([&](Communicator& g) {
          g.ReduceScatter(data.data(), 20000, DType::kFloat32, ReduceOp::kSum, data.data() + 60000);
        }) == start + "reduce-scatter of 20000 float32 (sum)");
  CHECK(report([&](Communicator& g) { g.AllGather(data.data(), 80, data.data() + 100); }) ==
        start + "all-gather of 80 bytes");
  CHECK(report([&](Communicator& g) {
          const std::array<std::size_t, 2> none = {0, 0};
          g.AllToAll(nullptr, none, nullptr, none);
        }) == start + "all-to-all");
}

TEST_CASE("calls that differ are named by group rank where processes have several members") {
  const auto barrier = [](Communicator& g) { g.Barrier(); };
  // In another process than member 0, and in the same one next to and before members elsewhere.
  CHECK(ReportOf({0, 1, 0}, barrier) ==
        "group g: member 0 called all-reduce of 20000 float32 (sum), member 1 called barrier");
  CHECK(ReportOf({1, 0, 0, 1}, barrier) ==
        "group g: member 1 called barrier, member 2 called all-reduce of 20000 float32 (sum)");
}

TEST_CASE("illegal arguments of one member end the calls of the others") {
  const std::string start = "group g: member 1: ";
  const auto report = [](const std::function<void(Communicator&)>& odd) {
    const std::string text = ReportOf({0, 1, 1, 0}, odd, "invalid argument");
    CHECK(ReportOf({0, 1}, odd, "invalid argument").substr(0, 18) == "group g: member 1:");
    return text;
  };
  CHECK(report([](Communicator& g) { g.Broadcast(nullptr, 0, 9); }) ==
        start + "broadcast: expected a root in [0, 4), got 9");
  CHECK(report([](Communicator& g) { g.AllReduce(nullptr, -1, DType::kInt64, ReduceOp::kMax); }) ==
        start + "all-reduce of -1 int64 (max): expected a count of at least 0");
  CHECK(report([](Communicator& g) {
          g.ReduceScatter(nullptr, -2, DType::kInt64, ReduceOp::kSum, nullptr);
        }) == start + "reduce-scatter of -2 int64 (sum): expected a count of at least 0");
  const std::array<std::size_t, 1> one = {0};
  CHECK(report([&](Communicator& g) { g.AllToAll(nullptr, one, nullptr, one); }) ==
        start + "all-to-all: expected 4 send sizes, got 1");
}

TEST_CASE("an all-to-all whose sizes disagree is refused with the pair named") {
  for (const Homes& homes : {Homes{0, 1, 2}, Homes{0, 1, 1}, Homes{1, 0, 1}, Homes{0, 0, 1}}) {
    const auto outcomes = RunSpanning(homes, [](Communicator& group) {
      const std::array<std::size_t, 3> four = {4, 4, 4};
      const std::array<std::size_t, 3> odd = {4, 4, 3};
      std::array<int, 3> data = {};
      std::array<int, 3> output = {};
      group.AllToAll(data.data(), four, output.data(), group.rank() == 1 ? odd : four);
    });
    INFO("member 2 lives in " << homes[2] << ", member 1 in " << homes[1]);
    const std::string text =
        "group g: all-to-all: member 2 sends 4 bytes to member 1, which expects 3";
    // Member 0 may have all it needs before anybody fails.
    CHECK((outcomes[0] == "ok" || outcomes[0].substr(outcomes[0].find(": ") + 2) == text));
    CHECK(outcomes[1].substr(outcomes[1].find(": ") + 2) == text);
    CHECK(outcomes[2].substr(outcomes[2].find(": ") + 2) == text);
    CHECK(std::count(outcomes.begin(), outcomes.end(), "invalid argument: " + text) >= 1);
  }
}

TEST_CASE("a plane that fails ends the job in its own words") {
  SpanningOptions options;
  options.prepare = [](MemoryNetwork& network) {
    network.FailReceivesOf(1, "the slice from n0 failed its check (header)");
  };
  const auto outcomes = RunSpanning(
      {0, 1, 0}, [](Communicator& group) { RunKind(group, 2, 5000); }, options);
  const std::string text = "the slice from n0 failed its check (header)";
  CHECK(outcomes ==
        std::vector<std::string>{"aborted: " + text, "unexpected: " + text, "aborted: " + text});
  CHECK(options.abort->cause() == text);
}

TEST_CASE("a member that is gone ends the waits in its process, without raising the signal") {
  SpanningOptions options;
  const auto outcomes = RunSpanning(
      {0, 0},
      [&](Communicator& group) {
        if (group.rank() == 0) group.Barrier();
      },
      options);
  CHECK(outcomes[0] == "aborted: local group of 2: member 1 left before this call");
  const auto spanning = RunSpanning(
      {0, 0, 1},
      [&](Communicator& group) {
        if (group.rank() == 1) return;
        if (group.rank() == 2) group.Barrier();
        const std::string outcome = OutcomeOf([&] { group.Barrier(); });
        const bool raised = options.abort->raised();
        options.abort->Raise("the end");
        throw std::runtime_error(outcome + (raised ? ", raised" : ""));
      },
      options);
  CHECK(spanning == std::vector<std::string>{
                        "unexpected: aborted: group g: barrier 1: a member left this process "
                        "before this call",
                        "ok", "aborted: the end"});
}

TEST_CASE("what members wait for can be read, and is gone when they go on") {
  GroupWaits waits({"n0", "n1"});
  SpanningOptions options;
  options.waits = &waits;
  const std::vector<std::string> expected = {
      "member 0 waits for the all-reduce 2 of tensor language.s0 from member 1",
      "member 2 waits for the broadcast of tensor language.s0 from member 0"};
  std::vector<std::string> texts;
  const auto outcomes = RunSpanning(
      {{"tensor language.s0", {0, 1, 0}}},
      [&](Communicator& group, const GroupSpec&) {
        group.Barrier();
        while (group.rank() == 1 && texts != expected && !options.abort->raised()) {
          texts = TextsOf(waits);
          std::sort(texts.begin(), texts.end());
        }
        int value = 1;
        group.AllReduce(&value, 1, DType::kInt32, ReduceOp::kSum);
      },
      options)[0];
  CHECK(outcomes == All(3, "ok"));
  CHECK(texts == expected);
  CHECK(waits.List().empty());
  CHECK(GroupWaits().NameOf(3) == "process 3");
}

TEST_CASE("a member whose message is not received reports it, and an abort ends its wait") {
  GroupWaits names({"n0", "n1"});
  for (GroupWaits* const waits : {&names, static_cast<GroupWaits*>(nullptr)}) {
    SpanningOptions options;
    options.waits = waits;
    std::atomic<MemoryNetwork*> stalled = nullptr;
    options.prepare = [&](MemoryNetwork& network) {
      network.StallLargeSends();
      stalled = &network;
    };
    const std::string expected =
        "member 0 waits for the receipt of its message in broadcast 1 of g from member 1";
    const auto seen = [&] {
      if (waits == nullptr) return stalled.load()->num_unmatched() == 1;  // the receive of the data
      const std::vector<std::string> texts = TextsOf(*waits);
      return std::count(texts.begin(), texts.end(), expected) == 1;
    };
    std::thread watcher([&] {
      while (stalled == nullptr && !options.abort->raised()) std::this_thread::yield();
      for (int times = 0; times < 1000 && !options.abort->raised(); times += seen() ? 1 : 0)
        std::this_thread::yield();
      options.abort->Raise("seen");
    });
    const auto outcomes = RunSpanning(
        {0, 1}, [](Communicator& group) { RunKind(group, KnownOperation::kBroadcast, 50000); },
        options);
    watcher.join();
    CHECK(outcomes == All(2, "aborted: seen"));
  }
}
