// Devices that run queues: programs return before their work has run.
#include <algorithm>
#include <sstream>

#include <catch2/catch.hpp>

#include "kinds/synthetic.hpp"
#include "tests/actors/job_fixture.hpp"

namespace troupe {
namespace {

using Catch::Matchers::Contains;

/// Two encoders of other ratios before a pipeline: slices from several devices become one input.
Config TwoEncoders() {
  Config config = SyntheticConfigOf({{"encoder1", LayoutOf(1, 2, 3)},
                                     {"encoder2", LayoutOf(1, 1, 4)},
                                     {"language", LayoutOf(1, 3, 2)}},
                                    {{"encoder1", "language"}, {"encoder2", "language"}});
  config.schedule.micro_batch_size = 3;
  config.schedule.microbatches = 5;
  config.modules[1].As<SyntheticConfig>().rows_per_sample = 2;
  return config;
}

/// An encoder on the ranks of a language model: no row changes ranks, as no actor may block here.
Config Colocated() {
  Config config = SyntheticConfigOf(
      {{"vision", LayoutOf(1, 1, 4)}, {"language", LayoutOf(1, 1, 4)}}, {{"vision", "language"}});
  config.modules[1].ranks = config.modules[0].ranks;
  config.cluster.ranks = 4;
  config.schedule.micro_batch_size = 2;
  config.schedule.microbatches = 6;
  config.schedule.window = 3;
  return config;
}

Config ShortChain(int pp) {
  Config config = SyntheticConfigOf({{"language", LayoutOf(1, pp, 1)}}, {});
  config.schedule.microbatches = 6;
  return config;
}

/// What training gives, as numbers that any difference would change.
struct Outcome {
  std::map<std::string, double> gradients;
  std::map<std::string, double> parameters;
  double loss = 0.0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome TrainedBy(JobFixture& job, const Config& config, std::uint64_t seed) {
  job.inspect = true;
  const auto rounds = TrainingRounds(2, config.schedule.microbatches);
  const JobDone done = job.RunShuffled(config, rounds, seed);
  if (!done.failure.empty()) FAIL(done.failure.text);
  return {job.seen->GradientSums(), job.seen->parameters, job.seen->rounds[1].loss.loss};
}

}  // namespace

TEST_CASE_METHOD(JobFixture, "devices with queues give the same sums whenever their work is done",
                 "[actors]") {
  const Config config = GENERATE(TwoEncoders(), Colocated());
  const Outcome plain = TrainedBy(*this, config, 0);
  REQUIRE(plain.loss != 0.0);
  UseQueues();
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    INFO("order of deliveries and completions " << seed);
    REQUIRE(TrainedBy(*this, config, seed) == plain);
  }
}

TEST_CASE_METHOD(JobFixture, "rows of a window that wait on the host give the same sums",
                 "[actors]") {
  const Outcome plain = TrainedBy(*this, Colocated(), 0);
  Config config = Colocated();
  config.modules[0].offload_results = true;
  UseQueues();
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    INFO("order of deliveries and completions " << seed);
    REQUIRE(TrainedBy(*this, config, seed) == plain);
  }
  CHECK(queues->num_on_host() == 50 * 4 * 4);  // of 4 ranks, in 2 windows of 2 steps
  REQUIRE(TrainedBy(*this, Colocated(), 0) == plain);
  CHECK(queues->num_on_host() == 50 * 4 * 4);
}

TEST_CASE_METHOD(JobFixture, "a device with a queue has the next pass before it is done with one",
                 "[actors]") {
  UseQueues();
  const Config config = ShortChain(2);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    REQUIRE(RunShuffled(config, TrainingRounds(1, 6), seed).failure.text == "");
    CHECK(queues->most(0) == 2);
    CHECK(queues->most(1) == 2);
    // At the sink the backward follows its forward without a word from the host between.
    CHECK_THAT(queues->together(1),
               Contains("language.s1/microbatch 2/forward;language.s1/microbatch 2/backward;\n"));
  }
}

TEST_CASE_METHOD(JobFixture, "a device with a queue runs the passes of 1f1b in the same order",
                 "[actors]") {
  const Config config = ShortChain(4);
  REQUIRE(Run(config, TrainingRounds(1, 6)).failure.text == "");
  std::vector<std::string> plain;
  for (int stage = 0; stage < 4; ++stage)
    plain.push_back(Order("language.s" + std::to_string(stage)));
  REQUIRE(plain[0] == "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5");
  UseQueues();
  REQUIRE(Run(config, TrainingRounds(1, 6)).failure.text == "");
  for (int stage = 0; stage < 4; ++stage) {
    CHECK(Order("language.s" + std::to_string(stage)) == plain[static_cast<std::size_t>(stage)]);
  }
}

TEST_CASE_METHOD(JobFixture, "gradients of one module are summed while another module computes",
                 "[actors]") {
  UseQueues();
  bool beside = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    REQUIRE(RunShuffled(Colocated(), TrainingRounds(1, 6), seed).failure.text == "");
    std::istringstream lines(queues->together(0));
    for (std::string line; std::getline(lines, line);) {
      beside = beside || (line.starts_with("vision.s0/") &&
                          line.ends_with(";language.s0/gradient reduction;"));
    }
    CHECK(queues->most(0, Lane::kCollectives) == 1);  // throws for a lane that nothing was on
  }
  CHECK(beside);
}

TEST_CASE_METHOD(JobFixture, "work that a device fails at is named with the device's words",
                 "[actors]") {
  UseQueues();
  queues->FailAt("language.s1/microbatch 3/backward");
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const JobDone done = RunShuffled(ShortChain(3), TrainingRounds(2, 6), seed);
    CHECK_THAT(done.failure.text,
               Contains("language.s1 dp0 rank 1 backward of step 1 mb 3: the device "
                        "caught fire"));
  }
}

TEST_CASE_METHOD(JobFixture, "what is wrong with queued work is said when it has run", "[actors]") {
  struct NotFinite : WrappedProgram {
    using WrappedProgram::WrappedProgram;
    ForwardResult Forward(const ForwardPass& pass) override {
      ForwardResult result = program->Forward(pass);
      if (pass.unit == 4) {
        result.finish = [](ForwardResult&) { throw std::runtime_error("output 0 is not finite"); };
      }
      return result;
    }
  };
  UseQueues();
  wrap_program = [](ProgramFactory make) -> ProgramFactory {
    return [make](const ShardAddress& shard) -> std::unique_ptr<StageProgram> {
      if (shard.pp == 1) return std::make_unique<NotFinite>(make(shard));
      return make(shard);
    };
  };
  const JobDone done = RunShuffled(ShortChain(3), TrainingRounds(1, 6), 7);
  CHECK_THAT(done.failure.text,
             Contains("language.s1 dp0 rank 1 forward of step 1 mb 4: output 0 is not finite"));
}

TEST_CASE_METHOD(JobFixture, "a device is busy as long as its queue is not empty", "[actors]") {
  UseQueues();
  actors = std::make_shared<ActivityTable>();
  bool idle_with_work = false;
  looking = [&] {
    for (const auto& entry : actors->List()) {
      if (!entry.name.starts_with("device ")) continue;
      const bool work = queues->has_work(std::stoi(entry.name.substr(7)));
      idle_with_work = idle_with_work || (work && !entry.activity->busy());
    }
  };
  REQUIRE(RunShuffled(ShortChain(2), TrainingRounds(1, 6), 3).failure.text == "");
  CHECK_FALSE(idle_with_work);
  for (const auto& entry : actors->List()) CHECK_FALSE(entry.activity->busy());
}

}  // namespace troupe
