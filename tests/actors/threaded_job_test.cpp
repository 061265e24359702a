// Jobs on real threads: what the deterministic scheduler cannot run, because ranks block in
// collectives.
#include "tests/actors/threaded_job.hpp"

#include <future>

#include <catch2/catch.hpp>

#include "kinds/synthetic.hpp"
#include "modules/wrapped_program.hpp"

namespace troupe {
namespace {

Config ColocatedConfig(Layout vision, Layout language, int ranks) {
  Config config =
      SyntheticConfigOf({{"vision", vision}, {"language", language}}, {{"vision", "language"}});
  config.modules[1].ranks = config.modules[0].ranks;
  config.cluster.ranks = ranks;
  return config;
}

}  // namespace

TEST_CASE("a colocated encoder runs once per window, before and after", "[actors][threads]") {
  Layout dp2, pp2;
  dp2.dp = 2;
  pp2.pp = 2;
  Config config = ColocatedConfig(dp2, pp2, 2);
  config.schedule.micro_batch_size = 2;
  config.schedule.window = 3;
  ThreadedJob job;
  REQUIRE(job.Run(config, TrainingRounds(1, 8)).failure.text == "");
  CHECK(job.Order("vision.s0") == "F0 B0 F1 B1 F2 B2");  // windows of 3, 3 and 2 microbatches
  CHECK(job.Order("language.s1") == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7");
}

TEST_CASE("every layout of a colocated edge gives the gradients of one rank", "[actors][threads]") {
  const bool queues = GENERATE(false, true);
  const auto gradients = [queues](Config config) {
    config.schedule.micro_batch_size = 8 / config.modules[1].layout.dp;
    for (ModuleConfig& module : config.modules) module.As<SyntheticConfig>().rows_per_sample = 3;
    ThreadedJob job;
    job.queues = queues;
    job.inspect = true;
    const JobDone done = job.Run(config, TrainingRounds(1, 4));
    REQUIRE(done.failure.text == "");
    std::map<std::string, double> sums;
    for (const auto& [name, value] : job.seen->gradients) sums[name] = value;  // replicas agree
    return sums;
  };
  const auto layout = [](int tp, int pp, int dp) {
    Layout l;
    l.tp = tp;
    l.pp = pp;
    l.dp = dp;
    return l;
  };
  // Patterns of a synthetic sink run over the rows of its own shard, so the language model keeps
  // dp = 1 where the reference has it; encoders are cut in every way.
  const auto reference = gradients(ColocatedConfig(layout(1, 1, 1), layout(1, 1, 1), 1));
  CHECK(gradients(ColocatedConfig(layout(1, 1, 4), layout(4, 1, 1), 4)) == reference);
  CHECK(gradients(ColocatedConfig(layout(2, 1, 2), layout(4, 1, 1), 4)) == reference);
  CHECK(gradients(ColocatedConfig(layout(4, 1, 1), layout(4, 1, 1), 4)) == reference);
}

TEST_CASE("a program that throws on one rank ends the job with its cause", "[actors][threads]") {
  struct Throwing : WrappedProgram {
    using WrappedProgram::WrappedProgram;
    ForwardResult Forward(const ForwardPass& pass) override {
      if (pass.unit == 2) throw std::runtime_error("device on fire\nsecond line");
      return program->Forward(pass);
    }
  };
  Layout dp2, pp2dp2;
  dp2.dp = 2;
  pp2dp2.pp = 2;
  pp2dp2.dp = 2;
  const Config config =
      SyntheticConfigOf({{"vision", dp2}, {"language", pp2dp2}}, {{"vision", "language"}});
  ThreadedJob job;
  job.wrap_program = [](ProgramFactory make) -> ProgramFactory {
    return [make](const ShardAddress& shard) -> std::unique_ptr<StageProgram> {
      auto program = make(shard);
      if (shard.module == "language" && shard.pp == 1 && shard.dp == 1) {
        return std::make_unique<Throwing>(std::move(program));
      }
      return program;
    };
  };
  CHECK(job.Run(config, TrainingRounds(3, 4)).failure ==
        "language.s1 dp1 rank 5 forward of step 1 mb 2: device on fire");
}

}  // namespace troupe
