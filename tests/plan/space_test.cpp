#include "plan/search/space.hpp"

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "plan/cost/device_file.hpp"
#include "plan/cost/job_cost.hpp"
#include "plan/search/planner.hpp"
#include "tests/plan/random_job.hpp"
#include "tests/plan/small_config.hpp"

namespace troupe {

TEST_CASE("a planned job is a legal job whose simulation is close to its closed form", "[plan]") {
  Config config = SmallModulesConfig();
  config.run.precision = Precision::kBFloat16;
  config.schedule.micro_batch_size = 4;
  config.schedule.microbatches = 8;
  config.optimizer.shard = GENERATE(OptimizerShard::kNone, OptimizerShard::kData);
  const int ranks = GENERATE(1, 3, 8, 12);
  INFO(ranks << " ranks");
  DeviceModel device = DeviceOfFlops(1e9);
  device.topology.devices_per_node = 8;
  device.topology.inside.bytes_per_s = 1e9;
  device.topology.between.bytes_per_s = 2e8;
  device.update_parameter_s = 1e-8;
  const SearchSpace space(config, device, {.ranks = ranks});
  const auto jobs = space.Best(1.3);
  REQUIRE(!jobs.empty());
  std::size_t compared = 0;
  for (const PlannedJob& job : jobs) {
    CHECK(job.ranks <= ranks);
    const Config applied = Applied(config, job);
    CHECK(applied.global_batch() == config.global_batch());
    CHECK(applied.cluster.ranks == job.ranks);
    const JobPlan plan(applied);
    const JobCost cost = CostOfJob(plan, device);
    INFO(ToString(job.sink.layout)
         << " " << ToString(job.sink.kind) << " m " << job.sink.microbatches << " mbs "
         << job.sink.micro_batch_size << " inlined " << job.sink.inlined);
    CHECK(cost.step_s == Approx(job.step_s).epsilon(0.15));
    if (++compared == 60) break;
  }
}

TEST_CASE("plans fit, by the estimate of troupe check, where memory is short", "[plan]") {
  Config config = LoadConfig("configs/vlm_7b.toml").config;
  config.schedule.microbatches = 64;
  DeviceModel device = ReadDevice("a100-80g", config.run);
  device.memory_bytes = GENERATE(12e9, 20e9, 30e9);
  INFO(device.memory_bytes << " bytes");
  const SearchSpace space(config, device, {.ranks = 16});
  const auto jobs = space.Best(1.5);
  REQUIRE(!jobs.empty());
  std::size_t fit = 0;
  const std::size_t looked = std::min<std::size_t>(jobs.size(), 40);
  for (std::size_t i = 0; i < looked; ++i) {
    const Plan plan = PlanOf(config, jobs[i], device);
    INFO(ToString(jobs[i].sink.layout) << " " << ToString(jobs[i].sink.kind) << " chunks "
                                       << jobs[i].sink.chunks << " " << plan.bytes);
    fit += plan.bytes <= device.memory_bytes ? 1U : 0U;
    CHECK(plan.bytes <= 1.1 * device.memory_bytes);
  }
  CHECK(fit >= looked - looked / 10);
}

TEST_CASE("the layouts of a job with experts can divide them", "[plan]") {
  const Config config = LoadConfig("configs/shapes_experts.toml").config;
  const DeviceModel device = ReadDevice("a100-80g", config.run);
  const SearchSpace space(config, device, {.ranks = 8});
  const auto jobs = space.Best(2.0);
  std::set<int> eps;
  for (const PlannedJob& job : jobs) {
    JobPlan plan(Applied(config, job));
    eps.insert(job.sink.layout.ep);
  }
  CHECK(eps == std::set<int>{1, 2, 4});  // of four experts
}

TEST_CASE("plans that only cut samples over cp in place of dp are twins", "[plan]") {
  Plan one;
  one.cost.step_s = 1.0;
  one.job.ranks = 8;
  one.job.sink.layout = {.tp = 2, .dp = 4};
  Plan two = one;
  two.job.sink.layout = {.tp = 2, .cp = 2, .dp = 2};
  two.job.sink.micro_batch_size = 2;
  CHECK(AreTwins(one, two));
  const auto differs = [&](const auto& change) {
    Plan other = two;
    change(other);
    return !AreTwins(one, other);
  };
  CHECK(differs([](Plan& plan) { plan.cost.step_s = 1.002; }));
  CHECK(differs([](Plan& plan) { plan.job.ranks = 9; }));
  CHECK(differs([](Plan& plan) { plan.job.sink.layout.tp = 1; }));
  CHECK(differs([](Plan& plan) { plan.job.sink.kind = ScheduleKind::kZbH1; }));
  CHECK(differs([](Plan& plan) { plan.job.sink.recompute = {LayerPart::kMlpUp}; }));
  CHECK(differs([](Plan& plan) { plan.job.encoders = {{}}; }));
}

TEST_CASE("fewer devices that are about as fast are found, and twins are left out", "[plan]") {
  // 512 devices divide the batch of 256 evenly, 640 do not.
  const Config config = LoadConfig("configs/vlm_7b.toml").config;
  const DeviceModel device = ReadDevice("h100-80g", config.run);
  const Plans plans = BestPlans(SearchSpace(config, device, {.ranks = 640}), config, device, 100);
  REQUIRE(!plans.best.empty());
  CHECK(plans.others == 0);
  for (std::size_t i = 0; i < plans.best.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) CHECK(!AreTwins(plans.best[j], plans.best[i]));
  }
  int fewest = plans.best.front().job.ranks;
  for (const Plan& plan : plans.best) {
    if (plan.cost.step_s <= kAboutAsFast * plans.best.front().cost.step_s) {
      fewest = std::min(fewest, plan.job.ranks);
    }
  }
  REQUIRE(plans.smaller);
  CHECK(plans.smaller->job.ranks == fewest);
  CHECK(fewest <= kClearlyFewer * plans.best.front().job.ranks);
}

TEST_CASE("a thousand random plans are configurations that troupe check accepts", "[plan]") {
  std::mt19937 random(19);
  int plans = 0;
  for (int draw = 0; plans < 1000; ++draw) {
    REQUIRE(draw < 400);
    const auto [path, overrides] = RandomJob(random, draw);
    const Config config = LoadConfig(path, overrides).config;
    DeviceModel device = DeviceOfFlops(1e9);
    device.topology.devices_per_node = 8;
    const SearchSpace space(config, device, {.ranks = static_cast<int>(1 + random() % 24)});
    auto jobs = space.Best(3.0);
    std::ranges::shuffle(jobs, random);
    for (std::size_t i = 0; i < std::min<std::size_t>(jobs.size(), 8); ++i, ++plans) {
      const auto settings = SettingsOf(config, jobs[i]);
      std::vector<std::string> all = overrides;
      all.insert(all.end(), settings.begin(), settings.end());
      INFO(path << " draw " << draw);
      try {
        const Config loaded = LoadConfig(path, all).config;
        CHECK(loaded == Applied(config, jobs[i]));
        JobPlan plan(loaded);
      } catch (const std::exception& error) {
        std::string text;
        for (const std::string& setting : settings) text += setting + "\n";
        FAIL_CHECK(error.what() << "\n" << text);
      }
    }
  }
}

}  // namespace troupe
