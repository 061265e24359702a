// The same actors on a simulated clock, against the simulator of the same rule.
#include "actors/virtual_time.hpp"

#include <random>

#include <catch2/catch.hpp>

#include "modules/synthetic/shape_program.hpp"
#include "schedule/simulate.hpp"
#include "tests/actors/job_fixture.hpp"

namespace troupe {
namespace {

/// Every stage its own times, so that a stage taken for another shows.
std::int64_t UnevenNs(bool forward, int stage, std::int64_t unit) {
  return forward ? 1000 + 130 * stage + 7 * (unit % 3) : 2000 + 170 * ((stage * 5) % 7);
}

std::int64_t Uneven(int stage, const Pass& pass) {
  return UnevenNs(pass.kind == PassKind::kForward, stage, pass.unit);
}

VirtualJob JobOf(const Config& config) {
  VirtualJob job;
  job.plan = std::make_shared<const JobPlan>(config);
  job.make_program = MakeShapePrograms(config);
  job.source = std::make_shared<SyntheticSource>(config);
  job.takes_ns = [](WorkKind kind, int stage, std::int64_t unit) -> std::int64_t {
    if (kind == WorkKind::kForward) return UnevenNs(true, stage, unit);
    return kind == WorkKind::kBackward ? UnevenNs(false, stage, unit) : 0;
  };
  return job;
}

WorkTime Equal(std::int64_t forward_ns, std::int64_t backward_ns) {
  return [=](WorkKind kind, int, std::int64_t) -> std::int64_t {
    if (kind == WorkKind::kForward) return forward_ns;
    return kind == WorkKind::kBackward ? backward_ns : 0;
  };
}

/// What one replica of a stage ran, with its times.
std::vector<TimedPass> PassesOf(const VirtualRun& run, int stage, int rank) {
  std::vector<TimedPass> passes;
  for (const PassRecord& record : run.records) {
    if (record.stage != stage || record.rank != rank) continue;
    PassKind kind = PassKind::kForward;
    if (record.kind == WorkKind::kBackward) kind = PassKind::kBackward;
    if (record.kind == WorkKind::kWeight) kind = PassKind::kWeight;
    if (kind == PassKind::kForward && record.kind != WorkKind::kForward) continue;
    passes.push_back({{kind, record.unit}, record.begin_ns, record.end_ns});
  }
  return passes;
}

/// Every pass of every rank begins and ends when the simulator says.
void CheckSimulated(const VirtualJob& job, const PassDuration& duration) {
  const VirtualRun run = RunInVirtualTime(job);
  REQUIRE(run.failure == "");
  const JobPlan& plan = *job.plan;
  const Simulation simulation =
      Simulate(plan.graph(), plan.schedule(), duration, plan.config().schedule.microbatches);
  CHECK(run.makespan_ns() == simulation.makespan_ns);
  for (std::size_t stage = 0; stage < plan.graph().stages().size(); ++stage) {
    for (int dp = 0; dp < plan.GridOfStage(static_cast<int>(stage)).layout().dp; ++dp) {
      for (const int rank : plan.RanksOf(static_cast<int>(stage), dp)) {
        INFO(plan.StageName(static_cast<int>(stage), dp) << " rank " << rank);
        CHECK((PassesOf(run, static_cast<int>(stage), rank) == simulation.stages[stage]));
      }
    }
  }
}

}  // namespace

TEST_CASE("in virtual time every pass begins and ends when the simulator says", "[actors]") {
  const std::int64_t microbatches = GENERATE(1, 4, 9);
  const bool equal = GENERATE(false, true);
  Config config;
  SECTION("a chain of 6, two replicas of tp 2") {
    config = SyntheticConfigOf({{"language", LayoutOf(2, 6, 2)}}, {});
  }
  SECTION("two encoders of other sizes before a language model") {
    config = SyntheticConfigOf({{"encoder1", LayoutOf(1, 3, 2)},
                                {"encoder2", LayoutOf(1, 1, 4)},
                                {"language", LayoutOf(1, 4, 2)}},
                               {{"encoder1", "language"}, {"encoder2", "language"}});
    config.schedule.micro_batch_size = 2;
  }
  SECTION("a colocated encoder, by windows") {
    config = SyntheticConfigOf({{"vision", LayoutOf(1, 1, 8)}, {"language", LayoutOf(2, 2, 2)}},
                               {{"vision", "language"}});
    config.modules[1].ranks = config.modules[0].ranks;
    config.cluster.ranks = 8;
    config.schedule.window = GENERATE(0, 2, 3);
    config.schedule.micro_batch_size = 4;
  }
  SECTION("a colocated encoder beside ranks that have an order") {
    config = SyntheticConfigOf({{"vision", LayoutOf(1, 1, 4)}, {"language", LayoutOf(1, 2, 2)}},
                               {{"vision", "language"}});
    config.modules[1].ranks = config.modules[0].ranks;
    config.cluster.ranks = 4;
    config.schedule.micro_batch_size = 4;
    config.schedule.kind = ScheduleKind::kInterleaved;
    config.schedule.chunks = 2;
    SetChunks(config);
  }
  SECTION("one colocated encoder, and one on ranks of its own") {
    config = SyntheticConfigOf({{"vision", LayoutOf(1, 1, 4)},
                                {"language", LayoutOf(1, 4, 1)},
                                {"audio", LayoutOf(1, 2, 1)}},
                               {{"vision", "language"}, {"audio", "language"}});
    config.modules[1].ranks = config.modules[0].ranks;
    config.modules[2].ranks = {4, 5};
    config.cluster.ranks = 6;
    config.schedule.window = GENERATE(0, 2);
    config.schedule.micro_batch_size = 4;
  }
  SECTION("a branch into two sinks") {
    config = SyntheticConfigOf({{"vision", LayoutOf(1, 2, 1)},
                                {"caption", LayoutOf(1, 1, 1)},
                                {"language", LayoutOf(1, 3, 1)}},
                               {{"vision", "caption"}, {"vision", "language"}});
  }
  const bool ordered = config.schedule.kind == ScheduleKind::kInterleaved;
  config.schedule.microbatches = ordered ? 2 * microbatches : microbatches;
  VirtualJob job = JobOf(config);
  INFO(microbatches << " microbatches, " << (equal ? "equal" : "uneven") << " times");
  if (equal) {  // much ends at one instant
    job.takes_ns = Equal(1000, 2000);
    CheckSimulated(job, EqualDurations(1000, 2000));
  } else {
    CheckSimulated(job, Uneven);
  }
}

TEST_CASE("on random graphs with many ties virtual time is the simulator's", "[actors]") {
  const std::string kind = GENERATE("1f1b", "gpipe", "zb-h1");
  const auto seed = GENERATE(range(1, 100));
  INFO(kind << ", seed " << seed);
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<std::pair<std::string, Layout>> modules;
  std::vector<std::pair<std::string, std::string>> edges;
  const int num_modules = 1 + draw(4);
  for (int m = 0; m < num_modules; ++m) {
    modules.emplace_back("m" + std::to_string(m), LayoutOf(1, 1 + draw(4), 1));
    for (int before = 0; before < m; ++before) {
      if (draw(2) == 0)
        edges.emplace_back(modules[static_cast<std::size_t>(before)].first, modules.back().first);
    }
  }
  Config config = SyntheticConfigOf(modules, edges);
  config.schedule.kind = ScheduleKindOf(kind).value();
  for (EdgeConfig& edge : config.edges) edge.credits = kind == "gpipe" ? 64 : 1 + draw(6);
  config.schedule.microbatches = 1 + draw(12);
  std::map<std::pair<int, WorkKind>, std::int64_t> takes;
  VirtualJob job = JobOf(config);
  for (int stage = 0; stage < static_cast<int>(job.plan->stages().size()); ++stage) {
    for (const auto work : {WorkKind::kForward, WorkKind::kBackward, WorkKind::kWeight}) {
      takes[{stage, work}] = draw(4);
    }
  }
  job.takes_ns = [&](WorkKind work, int stage, std::int64_t) -> std::int64_t {
    return work == WorkKind::kReduce || work == WorkKind::kUpdate ? 0 : takes.at({stage, work});
  };
  CheckSimulated(job, [&](int stage, const Pass& pass) {
    WorkKind work = WorkKind::kForward;
    if (pass.kind == PassKind::kBackward) work = WorkKind::kBackward;
    if (pass.kind == PassKind::kWeight) work = WorkKind::kWeight;
    return takes.at({stage, work});
  });
}

TEST_CASE("520 ranks complete a step in virtual time", "[actors]") {
  Config config = SyntheticConfigOf(
      {{"vision", LayoutOf(1, 1, 8)}, {"language", LayoutOf(8, 2, 32)}}, {{"vision", "language"}});
  config.schedule.microbatches = 8;
  VirtualJob job = JobOf(config);
  CheckSimulated(job, Uneven);
  const VirtualRun run = RunInVirtualTime(job);
  // Forwards, backwards, one reduction and one update on each rank.
  CHECK(run.records.size() == 520 * (8 + 8 + 2));
}

TEST_CASE("two runs in virtual time are the same record for record", "[actors]") {
  Config config = SyntheticConfigOf(
      {{"vision", LayoutOf(1, 2, 3)}, {"language", LayoutOf(1, 3, 2)}}, {{"vision", "language"}});
  config.schedule.microbatches = 5;
  config.schedule.micro_batch_size = 3;
  VirtualJob job = JobOf(config);
  job.steps = 3;
  job.rounds_ahead = 1;
  const VirtualRun run = RunInVirtualTime(job);
  REQUIRE(run.failure == "");
  CHECK((run.step_ns[0] < run.step_ns[1] && run.step_ns[1] < run.step_ns[2]));
  CHECK((run.records == RunInVirtualTime(job).records));
}

TEST_CASE("the time of reductions and updates counts", "[actors]") {
  Config config = SyntheticConfigOf({{"language", LayoutOf(1, 2, 2)}}, {});
  config.schedule.microbatches = 2;
  VirtualJob job = JobOf(config);
  const std::int64_t without = RunInVirtualTime(job).makespan_ns();
  job.takes_ns = [takes = job.takes_ns](WorkKind kind, int stage, std::int64_t unit) {
    if (kind == WorkKind::kReduce) return std::int64_t{300};
    return kind == WorkKind::kUpdate ? std::int64_t{40} : takes(kind, stage, unit);
  };
  CHECK(RunInVirtualTime(job).makespan_ns() == without + 340);
}

TEST_CASE("modules on the same ranks run in virtual time, phase by phase", "[actors]") {
  Config config = SyntheticConfigOf(
      {{"vision", LayoutOf(1, 1, 4)}, {"language", LayoutOf(2, 1, 2)}}, {{"vision", "language"}});
  config.modules[0].ranks = config.modules[1].ranks = {0, 1, 2, 3};
  config.cluster.ranks = 4;
  config.schedule.microbatches = 3;
  config.schedule.micro_batch_size = 2;
  VirtualJob job = JobOf(config);
  job.takes_ns = Equal(1000, 2000);
  const VirtualRun run = RunInVirtualTime(job);
  CHECK(run.failure.empty());
  // The encoder's window, three microbatches of the language model, the encoder's backward.
  CHECK(run.makespan_ns() == 1000 + 3 * (1000 + 2000) + 2000);
}

TEST_CASE("a pass that fails in virtual time ends the job with its name", "[actors]") {
  Config config = SyntheticConfigOf({{"language", LayoutOf(1, 2, 1)}}, {});
  VirtualJob job = JobOf(config);
  job.takes_ns = [](WorkKind, int stage, std::int64_t) -> std::int64_t { return -stage; };
  CHECK(
      RunInVirtualTime(job).failure ==
      "language.s1 dp0 rank 1 forward of step 1 mb 0: virtual time: F of language.s1 takes -1 ns");
}

TEST_CASE("a lost message in virtual time is named when nothing is left to do", "[actors]") {
  const Config config = SyntheticConfigOf({{"language", LayoutOf(1, 2, 1)}}, {});
  VirtualJob job = JobOf(config);
  job.faults = {PlantedFault::Parse("lose@stage language.s1 dp0@Activation@1")};
  const std::string failure = RunInVirtualTime(job).failure;
  CHECK_THAT(failure, Catch::Contains("nothing has moved") && Catch::Contains("language.s1"));
}

TEST_CASE("a job of 4096 stages completes a step in virtual time", "[actors]") {
  Config config;
  SECTION("as one chain") {
    config = SyntheticConfigOf({{"language", LayoutOf(1, 4096, 1)}}, {});
    config.schedule.microbatches = 4;
  }
  SECTION("as 256 encoders of 8 stages before a language model of 2048") {
    std::vector<std::pair<std::string, Layout>> modules;
    std::vector<std::pair<std::string, std::string>> edges;
    for (int i = 0; i < 256; ++i) {
      modules.emplace_back("encoder" + std::to_string(i), LayoutOf(1, 8, 1));
      edges.emplace_back(modules.back().first, "language");
    }
    modules.emplace_back("language", LayoutOf(1, 2048, 1));
    config = SyntheticConfigOf(modules, edges);
    config.schedule.microbatches = 4;
  }
  const VirtualJob job = JobOf(config);
  const VirtualRun run = RunInVirtualTime(job);
  REQUIRE(run.failure == "");
  CHECK(run.makespan_ns() ==
        Simulate(job.plan->graph(), OneForwardOneBackward(LimitsOf(job.plan->graph())), Uneven, 4)
            .makespan_ns);
}

}  // namespace troupe
