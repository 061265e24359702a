#include "trace/analyze/summary.hpp"

#include <catch2/catch.hpp>

#include "tests/trace/generated/generated.hpp"

namespace troupe {
namespace {

/// One device, three pieces of work: 10 idle, 20 F, 30 idle, 40 B, 5 reduce, 15 idle at the end.
RunTrace OneDevice() {
  RunTrace trace;
  trace.stages = {{"a", 0}};
  trace.actors = {MakeTraceActor(DeviceActor(0))};
  const auto add = [&](WorkKind kind, std::int64_t begin, std::int64_t end) {
    TraceWork work;
    work.pass.kind = kind;
    work.pass.begin_ns = begin;
    work.pass.end_ns = end;
    trace.work.push_back(work);
  };
  add(WorkKind::kForward, 10, 30);
  add(WorkKind::kBackward, 60, 100);
  add(WorkKind::kReduce, 100, 105);
  return trace;
}

TEST_CASE("own work, other work and idle time add up to the wall time", "[trace]") {
  const RunTrace trace = OneDevice();
  const TraceIndex index(trace);
  const Summary summary = Summarize(index, {StepSpan{1, 0, 0, 120}});
  REQUIRE(summary.stages.size() == 1);
  const StageTime& time = summary.stages.front();
  CHECK(time.wall_ns == 120);
  CHECK(time.own_ns == 60);
  CHECK(time.other_ns == 5);
  CHECK(time.idle_ns == 55);
  CHECK(time.bubble_ns == 55);  // a reduction is computed
  CHECK(summary.bubble() == Approx(55.0 / 120));
  REQUIRE(summary.waits.size() == 2);  // the time after the last work waits for nothing
  CHECK(summary.waits.front().end_ns - summary.waits.front().begin_ns == 30);
}

TEST_CASE("the bubble of all ranks counts each once, and no exchange as computing", "[trace]") {
  RunTrace trace = OneDevice();
  trace.stages = {{"a", 0}, {"b", 0}};
  // Rank 0 runs both stages, ranks 1 and 2 the second only.
  const auto add = [&](int rank, WorkKind kind, std::int64_t begin, std::int64_t end) {
    TraceWork work;
    work.pass.kind = kind;
    work.pass.stage = 1;
    work.pass.rank = static_cast<decltype(work.pass.rank)>(rank);
    work.pass.begin_ns = begin;
    work.pass.end_ns = end;
    trace.work.push_back(work);
  };
  add(0, WorkKind::kForward, 105, 112);
  add(1, WorkKind::kForward, 0, 13);
  add(1, WorkKind::kExchange, 20, 50);
  add(2, WorkKind::kUpdate, 40, 59);
  const TraceIndex index(trace);
  const Summary summary = Summarize(index, {StepSpan{1, 0, 0, 120}});
  CHECK(summary.ranks == 3);
  CHECK(summary.computed_ns == 65 + 7 + 13 + 19);
  CHECK(summary.bubble() == Approx(1.0 - 104.0 / 360));
  const Steps steps(index);
  CHECK_THAT(Format(summary, index, steps),
             Catch::Contains("\nbubble 71.1% of the time of 3 ranks together\n"));
}

TEST_CASE("sums of gradients during an exchange are computed, and all time counts once",
          "[trace]") {
  RunTrace trace;
  trace.stages = {{"a", 0}, {"b", 0}};
  trace.actors = {MakeTraceActor(DeviceActor(0))};
  const auto add = [&](int stage, WorkKind kind, std::int64_t begin, std::int64_t end) {
    TraceWork work;
    work.pass.stage = stage;
    work.pass.kind = kind;
    work.pass.begin_ns = begin;
    work.pass.end_ns = end;
    trace.work.push_back(work);
  };
  add(1, WorkKind::kExchange, 10, 40);
  add(0, WorkKind::kReduce, 20, 53);  // during the exchange and the backward after it
  add(1, WorkKind::kBackward, 40, 70);
  const TraceIndex index(trace);
  const Summary summary = Summarize(index, {StepSpan{1, 0, 0, 100}});
  CHECK(summary.computed_ns == 50);  // from 20 to 70
  REQUIRE(summary.stages.size() == 2);
  CHECK(summary.stages[1].own_ns == 30);
  CHECK(summary.stages[1].other_ns == 30);
  CHECK(summary.stages[1].idle_ns == 40);
  CHECK(summary.stages[1].bubble_ns == 50);
}

TEST_CASE("a checkpoint beside the steps has the time for which they waited", "[trace]") {
  generated::Spec spec;
  spec.steps = 5;
  RunTrace trace = generated::Generate(spec);
  const auto add = [&](std::vector<TraceWork>& list, WorkKind kind, int rank, std::int64_t begin_ns,
                       std::int64_t end_ns) {
    TraceWork work;
    work.pass = {.unit = 2, .round = 2, .begin_ns = begin_ns, .end_ns = end_ns, .kind = kind};
    work.pass.rank = rank;
    if (kind == WorkKind::kCheckpointWrite) work.cores.on_core_ns = 700'000;
    list.push_back(work);
  };
  const std::int64_t begin_ns = Steps(TraceIndex(trace)).Of(3).begin_ns + 1'000;
  const Summary without = Summarize(TraceIndex(trace), Steps(TraceIndex(trace)).all());
  add(trace.work, WorkKind::kSnapshot, 0, begin_ns, begin_ns + 300'000);
  add(trace.work, WorkKind::kSnapshot, 1, begin_ns, begin_ns + 500'000);
  add(trace.concurrent, WorkKind::kCheckpointWrite, 0, begin_ns + 500'000, begin_ns + 2'500'000);
  add(trace.concurrent, WorkKind::kCheckpointWrite, 1, begin_ns + 500'000, begin_ns + 3'500'000);
  add(trace.concurrent, WorkKind::kSnapshotWait, 0, begin_ns + 200'000, begin_ns + 300'000);
  add(trace.concurrent, WorkKind::kSnapshotWait, 1, begin_ns + 250'000, begin_ns + 500'000);
  const TraceIndex index(trace);
  const Steps steps(index);
  const Summary summary = Summarize(index, steps.all());
  REQUIRE(summary.checkpoints.size() == 1);
  CHECK(summary.checkpoints[0].step == 2);
  CHECK(summary.checkpoints[0].length_ns() == 3'500'000);
  CHECK(summary.checkpoints[0].copy_ns == 500'000);
  CHECK(summary.checkpoints[0].waited_ns == 250'000);
  CHECK_THAT(Format(summary, index, steps),
             Catch::Contains("\ncheckpoint of step 2: 3.50 ms (writers on a core for 1.40 ms; 500 "
                             "us to copy; training waited 250 us, ") &&
                 Catch::Contains("% of the time); its slowest shard ") &&
                 Catch::Contains(" on rank 1, 3.00 ms\n"));
  // It changes nothing else.
  CHECK(summary.computed_ns == without.computed_ns);
  CHECK(summary.end_ns == without.end_ns);
  CHECK(steps.all().size() == 5);
}

TEST_CASE("mirrors in memory are no checkpoints, and have one line", "[trace]") {
  generated::Spec spec;
  spec.steps = 5;
  RunTrace trace = generated::Generate(spec);
  const auto add = [&](std::vector<TraceWork>& list, WorkKind kind, std::int64_t step,
                       std::int64_t begin_ns, std::int64_t length_ns) {
    TraceWork work;
    work.pass = {.unit = step,
                 .round = step,
                 .begin_ns = begin_ns,
                 .end_ns = begin_ns + length_ns,
                 .kind = kind};
    if (kind == WorkKind::kMirror) work.cores.on_core_ns = 600'000;
    list.push_back(work);
  };
  for (const std::int64_t step : {1, 2}) {
    const std::int64_t begin_ns = Steps(TraceIndex(trace)).Of(step + 1).begin_ns + 1'000;
    add(trace.work, WorkKind::kSnapshot, step, begin_ns, 300'000);
    add(trace.concurrent, WorkKind::kMirror, step, begin_ns + 300'000, 600'000);
    add(trace.concurrent, WorkKind::kSnapshotWait, step, begin_ns + 800'000, step * 100'000);
  }
  const TraceIndex index(trace);
  const Steps steps(index);
  const Summary summary = Summarize(index, steps.all());
  CHECK(summary.checkpoints.empty());
  CHECK(summary.mirrors.mirrors == 2);
  CHECK(summary.mirrors.waited_ns == 300'000);
  CHECK_THAT(Format(summary, index, steps),
             Catch::Contains(
                 "\n2 mirrors in memory: made on a core in 1.20 ms; training waited 300 us, "));
}

TEST_CASE("writing a checkpoint is neither waiting nor computing, and has a line", "[trace]") {
  generated::Spec spec;
  spec.steps = 5;
  const RunTrace none = generated::Generate(spec);
  const TraceIndex without(none);
  const Steps all(without);
  CHECK_THAT(Format(Summarize(without, all.all()), without, all), !Catch::Contains("checkpoint"));

  spec.checkpoint_every = 2;
  spec.checkpoint_us = 2'000;
  spec.slow = {{"language.s1", 0, WorkKind::kCheckpoint, 4, 8'000, false}};
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const Steps steps(index);
  const Summary summary = Summarize(index, steps.all());
  CHECK(summary.computed_ns == Summarize(without, all.all()).computed_ns);
  for (const StageTime& time : summary.stages) {
    CHECK(time.own_ns + time.other_ns + time.idle_ns == time.wall_ns);
    const auto ranks = static_cast<std::int64_t>(time.ranks.size());
    CHECK(time.other_ns >= ranks * (time.stage == 2 ? 12'000'000 : 4'000'000));
  }
  REQUIRE(summary.checkpoints.size() == 2);
  CHECK(summary.checkpoints[0].step == 2);
  CHECK(summary.checkpoints[1].step == 4);
  // Until the director has handled what the last device answered.
  CHECK(summary.checkpoints[0].length_ns() > 2'002'000);
  CHECK(summary.checkpoints[0].length_ns() < 2'020'000);
  CHECK_THAT(
      Format(summary, index, steps),
      Catch::Contains("\n2 checkpoints, of steps 2 to 4: 12.0 ms in all (") &&
          Catch::Contains("% of the time); the longest, of step 4, took 10.0 ms, its slowest "
                          "shard language.s1 dp0 on rank ") &&
          Catch::Contains(", 10.0 ms\n"));
  CHECK_THAT(Format(Summarize(index, {steps.Of(3)}), index, steps),
             Catch::Contains("\ncheckpoint of step 2: 2.0") &&
                 Catch::Contains("% of the time); its slowest shard "));
  CHECK(Summarize(index, {steps.Of(2)}).checkpoints.empty());
}

TEST_CASE("work is counted only as far as it is in the steps", "[trace]") {
  const RunTrace trace = OneDevice();
  const TraceIndex index(trace);
  const StageTime time = Summarize(index, {StepSpan{1, 0, 20, 70}}).stages.at(0);
  CHECK(time.wall_ns == 50);
  CHECK(time.own_ns == 20);
  CHECK(time.idle_ns == 30);
}

TEST_CASE("waits name the edge and the one who kept the stage waiting", "[trace]") {
  const RunTrace trace = generated::Generate({});
  const TraceIndex index(trace);
  const Steps steps(index);
  const Summary summary = Summarize(index, steps.all());
  REQUIRE(summary.stages.size() == 3);
  for (const StageTime& time : summary.stages) {
    CHECK(time.own_ns + time.other_ns + time.idle_ns == time.wall_ns);
    std::int64_t waits_ns = 0;
    for (const WaitShare& wait : time.waits) waits_ns += wait.total_ns;
    CHECK(waits_ns <= time.idle_ns);
    CHECK(waits_ns > time.idle_ns / 2);
  }
  CHECK(summary.stages[0].waits.front().what == "gradient from language");
  CHECK(summary.stages[0].waits.front().on == "Gradient over vision>language");
  CHECK(summary.stages[0].waits.front().sender == "leader vision>language/source.0");
  CHECK(summary.stages[2].waits.front().what == "activation from language.s0");
  CHECK(summary.stages[2].waits.front().on == "Activation over language.s0>s1");
  CHECK(summary.stages[2].waits.front().sender == "stage language.s0 dp0");
}

TEST_CASE("waits are named by what was missing, and by actors where these are asked for",
          "[trace]") {
  generated::Spec spec;
  spec.dp = 2;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const Steps steps(index);
  const Summary summary = Summarize(index, steps.all());
  const std::string plain = Format(summary, index, steps);
  CHECK_THAT(plain, Catch::Contains("% gradient from language"));
  CHECK_THAT(plain, Catch::Contains("the end of its stage's forward"));
  CHECK_THAT(plain, Catch::Contains("F (step 2 mb 0)"));
  for (const char* inside : {"FromSet", "ToSet", "leader ", "lock step"}) {
    INFO(plain);
    CHECK_THAT(plain, !Catch::Contains(inside));
  }
  const std::string actors = Format(summary, index, steps, Detail::kActors);
  CHECK_THAT(actors, Catch::Contains("Gradient over vision>language from leader vision>language/"));
  CHECK_THAT(actors, !Catch::Contains("FromSet"));
}

TEST_CASE("busy time is divided into computing and having no core", "[trace]") {
  RunTrace trace = OneDevice();
  trace.processes.resize(1);
  trace.processes[0].cores = 0;
  TraceIndex old(trace);
  CHECK_THAT(Format(Summarize(old, {StepSpan{1, 0, 0, 120}}), old, Steps(old)),
             !Catch::Contains("no core"));
  trace.work[0].cores = {10, 8};   // of 20
  trace.work[1].cores = {25, 15};  // of 40
  trace.processes[0].cores = 1;
  trace.work.push_back(trace.work[1]);
  trace.work.back().pass.rank = 1;
  const TraceIndex index(trace);
  const Summary summary = Summarize(index, {StepSpan{1, 0, 0, 120}});
  CHECK(summary.stages[0].cores == CoreTime{60, 38});
  CHECK(summary.cores == CoreTime{60, 38});
  const std::string text = Format(summary, index, Steps(index));
  CHECK_THAT(text, Catch::Contains("busy  computing  no core  other"));
  CHECK_THAT(text, Catch::Contains("their work had no core for 15.8% of that time (2 ranks on 1 "
                                   "core): bubbles and waits are longer"));
  // Half of a pass has half of its time.
  CHECK(Summarize(index, {StepSpan{1, 0, 0, 20}}).cores == CoreTime{5, 4});
}

TEST_CASE("the most memory that each process had in use is that of the steps asked for",
          "[trace]") {
  generated::Spec spec;
  spec.processes = 2;  // 1,000,000 bytes and one page per piece of work, 2,000,000 likewise
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const Steps steps(index);
  std::vector<std::int64_t> pieces(2);
  for (const TraceWork& work : trace.work) {
    ++pieces[static_cast<std::size_t>(index.ProcessOf(work))];
  }
  const Summary whole = Summarize(index, steps.all());
  CHECK(whole.memory_bytes ==
        std::vector<std::int64_t>{1'000'000 + 4096 * pieces[0], 2'000'000 + 4096 * pieces[1]});
  const Summary first = Summarize(index, {steps.Of(1)});
  CHECK(first.memory_bytes == std::vector<std::int64_t>{1'000'000 + 4096 * pieces[0] / 3,
                                                        2'000'000 + 4096 * pieces[1] / 3});
  CHECK_THAT(Format(whole, index, steps),
             Catch::Contains("most memory") && Catch::Contains(Bytes(whole.memory_bytes[1])));
}

TEST_CASE("every edge counts its messages and their bytes", "[trace]") {
  const RunTrace trace = generated::Generate({});
  const TraceIndex index(trace);
  const Summary summary = Summarize(index, {});
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
  for (const TraceMessage& m : trace.messages) {
    if (m.link < 0) continue;
    ++messages;
    bytes += m.bytes;
  }
  for (const EdgeTime& edge : summary.edges) {
    messages -= edge.messages;
    bytes -= edge.bytes;
    CHECK(edge.queue_median_ns <= edge.queue_p99_ns);
    CHECK(edge.queue_p99_ns <= edge.queue_max_ns);
  }
  CHECK(messages == 0);
  CHECK(bytes == 0);
}

TEST_CASE("what a trace lacks is always shown", "[trace]") {
  RunTrace trace = generated::Generate({});
  CHECK(DescribeGaps(trace).empty());
  trace.processes.front().dropped = 12;
  trace.processes.front().torn = 3;
  trace.missing = {"n2"};
  trace.skipped = {"n0 (1).trace is left out: n0.trace is also of process 0, n0"};
  const std::string line =
      "missing: n0 has overwritten its oldest 12 of 628 records; n0 left 3 half-written; no file "
      "of n2\nnot read: n0 (1).trace is left out: n0.trace is also of process 0, n0\n";
  CHECK(DescribeGaps(trace) == line);
  const TraceIndex index(trace);
  const Steps steps(index);
  CHECK(Format(Summarize(index, steps.all()), index, steps).rfind(line, 0) == 0);
}

}  // namespace
}  // namespace troupe
