// No order of message delivery breaks a job: two encoders with different replica counts and a
// pipeline of three stages, whole or cut over cp, with experts that replicas share or without, run in
// thousands of random orders.
#include <sstream>

#include <catch2/catch.hpp>

#include "kinds/synthetic.hpp"
#include "modules/wrapped_program.hpp"
#include "tests/actors/job_fixture.hpp"

namespace troupe {
namespace {

/// Encoder 1: pp2 dp3; encoder 2: dp4; language: pp3 dp2, fed by both. 6 samples per microbatch, so
/// that neither 3 -> 2 nor 4 -> 2 cuts fall together; rows differ by encoder.
Config TwoEncoders() {
  Config config = SyntheticConfigOf({{"encoder1", LayoutOf(1, 2, 3)},
                                     {"encoder2", LayoutOf(1, 1, 4)},
                                     {"language", LayoutOf(1, 3, 2)}},
                                    {{"encoder1", "language"}, {"encoder2", "language"}});
  config.schedule.micro_batch_size = 3;
  config.edges[0].credits = 3;
  config.edges[1].credits = 2;
  config.modules[1].As<SyntheticConfig>().rows_per_sample = 2;
  return config;
}

/// The same with samples cut over cp: 3 and 2 rows of each, in 2 and 3 parts that feed 2.
Config CutEncoders() {
  Config config = SyntheticConfigOf({{"encoder1", {.cp = 2, .pp = 2, .dp = 3}},
                                     {"encoder2", {.cp = 3, .dp = 2}},
                                     {"language", {.cp = 2, .pp = 3, .dp = 2}}},
                                    {{"encoder1", "language"}, {"encoder2", "language"}});
  config.schedule.micro_batch_size = 3;
  config.edges[0].credits = 3;
  config.edges[1].credits = 2;
  config.modules[0].As<SyntheticConfig>().rows_per_sample = 3;
  config.modules[1].As<SyntheticConfig>().rows_per_sample = 2;
  return config;
}

/// The same with experts in the language model, whose two replicas share them.
Config SharedExperts() {
  Config config = CutEncoders();
  ModuleConfig& language = config.modules[2];
  language.As<SyntheticConfig>().experts = 4;
  language.layout.ep = 4;
  return config;
}

Config ConfigNumber(int number) {
  return number == 0 ? TwoEncoders() : number == 1 ? CutEncoders() : SharedExperts();
}

/// Empty, or which promise of the stage rule the order breaks.
std::string BrokenRule(const std::string& order, std::int64_t limit) {
  std::istringstream words(order);
  std::int64_t forwards = 0;
  std::int64_t backwards = 0;
  for (std::string word; words >> word;) {
    const std::int64_t unit = std::stoll(word.substr(1));
    if (word[0] == 'F' && unit != forwards++) return "forwards out of order: " + order;
    if (word[0] == 'B' && unit != backwards++) return "backwards out of order: " + order;
    if (backwards > forwards) return "a backward before its forward: " + order;
    if (forwards - backwards > limit) return "more in flight than allowed: " + order;
  }
  return forwards == backwards ? "" : "a forward without backward: " + order;
}

/// Notes the unit of every backward that is said to be the last of its round.
struct NoteLast : WrappedProgram {
  using Units = std::vector<std::int64_t>;
  NoteLast(std::unique_ptr<StageProgram> inner, Units& into)
      : WrappedProgram(std::move(inner)), last(into) {}
  BackwardResult Backward(const BackwardPass& pass) override {
    if (pass.last) last.push_back(pass.unit);
    return program->Backward(pass);
  }
  Units& last;
};

void RunMany(JobFixture& job, const Config& config, int runs) {
  constexpr std::int64_t kMicrobatches = 5;
  std::map<std::string, NoteLast::Units> last;  // by shard
  job.wrap_program = [&last](ProgramFactory make) -> ProgramFactory {
    return [&last, make](const ShardAddress& shard) {
      return std::make_unique<NoteLast>(make(shard), last[ToString(shard)]);
    };
  };
  job.inspect = true;
  REQUIRE(job.Run(config, TrainingRounds(2, kMicrobatches)).failure.text == "");
  const auto gradients = job.seen->GradientSums();
  const auto parameters = job.seen->parameters;
  const double loss = job.seen->rounds[1].loss.loss;
  REQUIRE(gradients.size() == 6);
  const NoteLast::Units last_of_rounds = {kMicrobatches - 1, 2 * kMicrobatches - 1};

  for (int run = 1; run <= runs; ++run) {
    INFO("delivery order " << run);
    const auto seed = static_cast<std::uint64_t>(run);
    last.clear();
    const JobDone done = job.RunShuffled(config, TrainingRounds(2, kMicrobatches), seed);
    if (!done.failure.empty()) FAIL(done.failure.text);
    for (const StagePlan& stage : job.plan->stages()) {
      const std::string name = job.plan->graph().StageName(stage.stage);
      if (job.plan->LockStepReplicas(stage.stage, 0).size() > 1) {
        const std::string order = job.Order(name, 1);
        if (order.starts_with("replicas")) FAIL(name << ": " << order);
      }
      for (const std::string& order : job.Orders(name, 1)) {
        const std::string broken = BrokenRule(order, stage.limit);
        if (!broken.empty()) FAIL(name << ": " << broken);
      }
    }
    CHECK(std::ssize(last) == config.cluster.ranks);
    for (const auto& [shard, units] : last) {
      if (units != last_of_rounds) FAIL(shard << ": another backward is the last");
    }
    if (job.seen->GradientSums() != gradients) FAIL("other gradients than in delivery order 0");
    if (job.seen->parameters != parameters) FAIL("other parameters than in delivery order 0");
    if (job.seen->rounds[1].loss.loss != loss) FAIL("another loss than in delivery order 0");
  }
  SUCCEED();
}

}  // namespace

TEST_CASE_METHOD(JobFixture, "300 random delivery orders give the same sums and keep the rule",
                 "[actors]") {
  RunMany(*this, ConfigNumber(GENERATE(0, 1, 2)), 100);
}

TEST_CASE_METHOD(JobFixture, "10,000 random delivery orders give the same sums and keep the rule",
                 "[actors][slow]") {
  RunMany(*this, ConfigNumber(GENERATE(0, 1, 2)), 10'000);
}

TEST_CASE_METHOD(JobFixture, "a lost sample changes a gradient", "[actors]") {
  // What the sums above can see: without this, equal sums would prove nothing.
  struct ShortSource : SyntheticSource {
    using SyntheticSource::SyntheticSource;
    std::shared_ptr<const Inputs> Assemble(const FeedUnit& unit,
                                           const std::vector<Buffer>& samples) override {
      auto inputs = std::make_shared<Inputs>(*SyntheticSource::Assemble(unit, samples));
      if (unit.module == "encoder2" && unit.dp == 1 && unit.unit == 3) inputs->table.rows[0] = 1;
      return inputs;
    }
  };
  const Config config = ConfigNumber(GENERATE(0, 1, 2));
  inspect = true;
  REQUIRE(Run(config, TrainingRounds(1, 5)).failure.text == "");
  const auto gradients = seen->GradientSums();
  source = std::make_shared<ShortSource>(config);
  REQUIRE(Run(config, TrainingRounds(1, 5)).failure.text == "");
  CHECK(seen->GradientSums() != gradients);
}

}  // namespace troupe
