#include "trace/analyze/why.hpp"

#include <random>

#include <catch2/catch.hpp>

#include "tests/trace/generated/generated.hpp"
#include "trace/analyze/critical.hpp"
#include "trace/analyze/messages.hpp"
#include "trace/analyze/stall.hpp"

namespace troupe {
namespace {

std::string Explained(const RunTrace& trace, const std::string& actor = "") {
  const TraceIndex index(trace);
  const Usual usual(index);
  const Steps steps(index);
  std::vector<int> actors;
  if (!actor.empty()) actors = ActorsNamed(trace, actor);
  return Format(ExplainWait(index, usual, SlowestStep(steps), actors), index, usual);
}

TEST_CASE("a slow pass is the root of the waits for it", "[trace]") {
  generated::Spec spec;
  spec.slow = {{"vision.s0", 0, WorkKind::kForward, 5, 3000, false}};
  const RunTrace trace = generated::Generate(spec);
  const std::string text = Explained(trace, "language.s1");
  CHECK_THAT(text, Catch::Contains("language.s1 dp0, device"));
  CHECK_THAT(text, Catch::Contains("root: device 0 (n0, pid 100): F of vision.s0 (step 2 mb 1) "
                                   "took 3.08 ms, usual 80.0 us\n"));
  CHECK_THAT(text, Catch::Contains("actors waited for it"));
  CHECK_THAT(Explained(trace), Catch::Contains("root: device 0 "));
}

TEST_CASE("a message of a damaged trace without a receiver has no handler", "[trace]") {
  const RunTrace trace = generated::Generate({});
  const TraceIndex index(trace);
  CHECK_FALSE(index.HandledBy(0).empty());
  CHECK(index.HandledBy(-1).empty());
}

TEST_CASE("a checkpoint is the root of the step that it makes long", "[trace]") {
  generated::Spec spec;
  spec.steps = 5;
  spec.checkpoint_every = 2;
  spec.checkpoint_us = 30'000;  // all devices alike: none waits for another's shard
  const std::string alike = Explained(generated::Generate(spec));
  CHECK_THAT(alike, Catch::Contains("step 3 ") || Catch::Contains("step 5 "));
  CHECK_THAT(alike, Catch::Contains("root: device ") &&
                        Catch::Contains(": writing the checkpoint of step ") &&
                        Catch::Contains(") took 30.0 ms, usual none\n") &&
                        !Catch::Contains("the schedule has this wait"));

  spec.checkpoint_us = 100;
  spec.slow = {{"language.s0", 0, WorkKind::kCheckpoint, 2, 30'000, false}};
  const std::string slow = Explained(generated::Generate(spec), "vision.s0");
  CHECK_THAT(slow, Catch::Contains("in step 3 before F of vision.s0 (step 3 mb 0)"));
  CHECK_THAT(slow, Catch::Contains("(n0, pid 100): writing the checkpoint of step 2 (language.s0) "
                                   "took 30.1 ms, usual none\n"));
}

TEST_CASE("what is slow after the shards are written is the checkpoint's, too", "[trace]") {
  generated::Spec spec;
  spec.modules = {{"language", 1, 1, 100, 200}};  // one set of devices, so one answer
  spec.edges = {};
  spec.steps = 4;
  spec.checkpoint_every = 2;
  spec.slow_handlers = {{"director", "ShardStored", -1, 30'000}};
  CHECK_THAT(Explained(generated::Generate(spec)),
             Catch::Contains("root: director (n0, pid 100): ShardStored (checkpoint) took 30.0 ms, "
                             "usual none\n"));
}

TEST_CASE("checkpoints after every step are the schedule's own", "[trace]") {
  generated::Spec spec;
  spec.checkpoint_every = 1;
  spec.checkpoint_us = 30'000;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const Usual usual(index);
  for (int w = 0; static_cast<std::size_t>(w) < trace.work.size(); ++w) {
    const TraceWork& work = trace.work[static_cast<std::size_t>(w)];
    if (work.pass.kind != WorkKind::kCheckpoint) continue;
    const Segment segment{SegmentKind::kHandler, -1, work.message, w, 0, 0};
    CHECK(usual.InStep(segment) == 30'000'000);
    CHECK(usual.TextInStep(segment) == "30.0 ms");
  }
  CHECK_THAT(Explained(trace), Catch::Contains("the schedule has this wait"));
}

TEST_CASE("a pass that had no core for a while is not blamed on the layout", "[trace]") {
  generated::Spec spec;
  spec.slow = {{"vision.s0", 0, WorkKind::kForward, 5, 3000, false}};
  RunTrace trace = generated::Generate(spec);
  for (TraceWork& work : trace.work) {
    const std::int64_t took_ns = work.pass.end_ns - work.pass.begin_ns;
    const std::int64_t without_ns = took_ns > 1'000'000 ? 2'500'000 : 0;
    work.cores = {took_ns - without_ns, without_ns};
  }
  const std::string text = Explained(trace, "language.s1");
  CHECK_THAT(text, Catch::Contains("F of vision.s0 (step 2 mb 1) took 3.08 ms, usual 80.0 us, "
                                   "2.50 ms of it without a core\n"));
  CHECK_THAT(text, Catch::Contains(" the work in this chain was runnable without a core"));
  const TraceIndex index(trace);
  const CriticalPath path = CriticalPathOf(index, Steps(index).Of(2));
  const std::string critical = Format(path, index, 100'000);
  CHECK_THAT(critical, Catch::Contains(" ms of it without a core), boundary "));
  CHECK_THAT(critical, Catch::Contains("F of vision.s0 (step 2 mb 1), usual 80.0 us, 2.50 ms "
                                       "without a core"));
}

TEST_CASE("an actor that only decides can be the root", "[trace]") {
  generated::Spec spec;
  spec.slow_handlers = {{"leader vision>language/destination.0", "Slice", 6, 2500}};
  // It kept a gradient waiting that had come while it was busy.
  CHECK_THAT(Explained(generated::Generate(spec)),
             Catch::Contains("root: leader vision>language/destination.0 (n0, pid 100): was busy "
                             "with Slice (step 2 mb 2) for 2.50 ms, usual 1.00 us"));
}

TEST_CASE("where nothing is slow the wait is called the schedule's own", "[trace]") {
  CHECK_THAT(Explained(generated::Generate({})), Catch::Contains("the schedule has this wait"));
}

TEST_CASE("planted slow passes and handlers are found in at least 99 of 100 runs", "[trace]") {
  int right = 0;
  std::string missed;
  constexpr int kRuns = 200;
  for (int seed = 0; seed < kRuns; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const auto draw = [&](int count) {
      return static_cast<int>(random() % static_cast<std::uint64_t>(count));
    };
    generated::Spec spec;
    spec.dp = 1 + draw(2);
    spec.processes = 1 + draw(2);
    const int dp = draw(spec.dp);
    const std::int64_t unit = 4 + draw(4);
    const std::int64_t extra_us = 800 + 100 * draw(20);
    std::string root;
    if (draw(2) == 0) {
      const std::vector<std::string> stages = {"vision.s0", "language.s0", "language.s1"};
      const std::string stage = stages[static_cast<std::size_t>(draw(3))];
      const WorkKind kind = draw(2) == 0 ? WorkKind::kForward : WorkKind::kBackward;
      spec.slow = {{stage, dp, kind, unit, extra_us, false}};
      root = ToString(kind) + std::string(" of ") + stage + " (step 2 mb " +
             std::to_string(unit - 4) + ")";
    } else {
      const std::vector<std::pair<std::string, std::string>> handlers = {
          {"leader vision>language/source.", "Activation"},
          {"leader vision>language/destination.", "Slice"},
          {"leader vision>language/destination.", "Gradient"},
          {"leader vision>language/source.", "GradientSlice"}};
      const auto& [name, type] = handlers[static_cast<std::size_t>(draw(4))];
      spec.slow_handlers = {{name + std::to_string(dp), type, unit, extra_us}};
      root = name + std::to_string(dp);
    }
    const std::string text = Explained(generated::Generate(spec));
    const std::string line = text.substr(std::min(text.find("root: "), text.size()));
    if (line.find(root) != std::string::npos) {
      ++right;
    } else {
      missed += "seed " + std::to_string(seed) + ": planted " + root + "\n" + text;
    }
  }
  INFO(missed);
  CHECK(right * 100 >= kRuns * 99);
}

TEST_CASE("a handler that never ends is named, with what waits behind it", "[trace]") {
  generated::Spec spec;
  spec.slow = {{"language.s0", 0, WorkKind::kBackward, 5, 0, true}};
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const Usual usual(index);
  const Stall stall = FindStall(index, usual);
  REQUIRE(stall.open.size() == 2);  // both shards
  CHECK(stall.lost.empty());
  CHECK_THAT(Format(stall, index), Catch::Contains("runs RunBackward (step 2 mb 1), for "));
  CHECK_THAT(LastActivity(index, usual, index.message(stall.open[0].message).receiver),
             Catch::Contains("runs RunBackward (step 2 mb 1)"));
}

TEST_CASE("a message that was lost is named with both its ends", "[trace]") {
  generated::Spec spec;
  spec.lost_type = "Slice";
  spec.lost_unit = 5;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const Stall stall = FindStall(index, Usual(index));
  REQUIRE(stall.lost.size() == 1);
  CHECK(stall.open.empty());
  CHECK_THAT(Format(stall, index),
             Catch::Contains("Slice over vision>language (step 2 mb 1) from leader "
                             "vision>language/source.0 to leader vision>language/destination.0"));
}

TEST_CASE("a run that ended well has neither", "[trace]") {
  const RunTrace trace = generated::Generate({});
  const TraceIndex index(trace);
  CHECK(Format(FindStall(index, Usual(index)), index).empty());
}

}  // namespace
}  // namespace troupe
