#include "plan/search/space.hpp"

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "plan/cost/device_file.hpp"
#include "plan/cost/job_cost.hpp"
#include "plan/memory.hpp"
#include "plan/process_plan.hpp"
#include "plan/search/planner.hpp"
#include "plan/search/search_job.hpp"
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

namespace {

/// The memory of the rank that needs most, as `troupe check` estimates it.
double NeededBy(const JobPlan& plan) {
  std::size_t most = 0;
  for (const auto& [rank, bytes] :
       RankNeeds(StageNeeds(plan, ProcessPlan(plan.config().cluster)))) {
    most = std::max(most, bytes);
  }
  return static_cast<double>(most);
}

/// Gives the device a part of the memory that the fastest job needs, and a link to the host that hides
/// copies.
void MakeMemoryShort(const Config& config, const SearchLimits& limits, std::mt19937& random,
                     DeviceModel& device) {
  const auto fastest = SearchSpace(config, device, limits).Best(1.0);
  if (fastest.empty()) return;
  device.memory_bytes = PlanOf(config, fastest.front(), device).bytes *
                        (0.3 + 0.1 * static_cast<double>(random() % 8));
  device.host_bytes_per_s = 1e12;
}

/// Expects the plans of other windows and recomputation of encoders to be no faster, or not to fit.
void ExpectBestOfNeighbours(const Config& config, const Plan& best, const DeviceModel& device) {
  int fit = 0;
  for (const std::int64_t window : HalvesOf(best.job.sink.microbatches)) {
    for (const Recompute& recompute : RecomputeLevels()) {
      PlannedJob other = best.job;
      other.sink.window = window == other.sink.microbatches ? 0 : window;
      for (EncoderPoint& point : other.encoders) point.recompute = recompute;
      const Plan plan = PlanOf(config, other, device);
      if (plan.bytes > 0.94 * device.memory_bytes) continue;
      ++fit;
      INFO("window " << window << " " << plan.bytes << " bytes");
      CHECK(plan.cost.step_s >= best.cost.step_s * (1.0 - 1e-3));
    }
  }
  CHECK(fit > 1);
}

}  // namespace

TEST_CASE("a shorter window is chosen where memory is short, and no other is better", "[plan]") {
  const Config config = LoadConfig("configs/vlm_7b.toml").config;
  const DeviceModel device = ReadDevice("h100-80g", config.run);
  const Plans plans = BestPlans(SearchSpace(config, device, {.ranks = 2}), config, device, 3);
  REQUIRE(!plans.best.empty());
  const Plan& best = plans.best.front();
  REQUIRE(best.job.sink.window != 0);
  CHECK(best.config.schedule.window == best.job.sink.window);
  CHECK(best.bytes <= device.memory_bytes);
  ExpectBestOfNeighbours(config, best, device);

  // As it was for windows of a step alone: the encoder has to compute again, or does not fit.
  PlannedJob whole = best.job;
  whole.sink.window = 0;
  CHECK(PlanOf(config, whole, device).bytes > device.memory_bytes);
  whole.encoders.front().recompute = {LayerPart::kLayer};
  CHECK(PlanOf(config, whole, device).cost.step_s > best.cost.step_s);
}

TEST_CASE("with enough memory encoders run for a step at once", "[plan]") {
  const Config config = LoadConfig("configs/vlm_7b.toml").config;
  DeviceModel device = ReadDevice("h100-80g", config.run);
  device.memory_bytes = 1e12;
  for (const PlannedJob& job : SearchSpace(config, device, {.ranks = 8}).Best(1.5)) {
    CHECK(job.sink.window == 0);
    CHECK(!job.sink.offloads);
  }
}

TEST_CASE("windows are halves of halves", "[plan]") {
  CHECK(HalvesOf(1) == std::vector<std::int64_t>{1});
  CHECK(HalvesOf(7) == std::vector<std::int64_t>{7, 1});
  CHECK(HalvesOf(32) == std::vector<std::int64_t>{32, 16, 8, 4, 2, 1});
  CHECK(HalvesOf(90) == std::vector<std::int64_t>{90, 45, 18, 9, 3, 1});
}

TEST_CASE("a thousand random plans are configurations that troupe check accepts", "[plan]") {
  std::mt19937 random(19);
  int plans = 0;
  int windows = 0;
  int offloads = 0;
  for (int draw = 0; plans < 1000; ++draw) {
    REQUIRE(draw < 600);
    const auto [path, overrides] = RandomJob(random, draw);
    const Config config = LoadConfig(path, overrides).config;
    DeviceModel device = DeviceOfFlops(1e9);
    device.topology.devices_per_node = 8;
    const SearchLimits limits = {.ranks = static_cast<int>(1 + random() % 24)};
    if (draw % 2 == 0) MakeMemoryShort(config, limits, random, device);
    const SearchSpace space(config, device, limits);
    auto jobs = space.Best(3.0);
    std::ranges::shuffle(jobs, random);
    // Few have windows.
    std::ranges::stable_partition(jobs, [](const PlannedJob& job) { return job.sink.window != 0; });
    for (std::size_t i = 0; i < std::min<std::size_t>(jobs.size(), 8); ++i, ++plans) {
      const auto settings = SettingsOf(config, jobs[i]);
      std::vector<std::string> all = overrides;
      all.insert(all.end(), settings.begin(), settings.end());
      INFO(path << " draw " << draw);
      try {
        const Config loaded = LoadConfig(path, all).config;
        CHECK(loaded == Applied(config, jobs[i]));
        const JobPlan plan(loaded);
        windows += jobs[i].sink.window != 0 ? 1 : 0;
        offloads += jobs[i].sink.offloads ? 1 : 0;
        if (jobs[i].sink.window == 0 && !jobs[i].sink.offloads) continue;
        CHECK(PlanOf(config, jobs[i], device).bytes == NeededBy(plan));
      } catch (const std::exception& error) {
        std::string text;
        for (const std::string& setting : settings) text += setting + "\n";
        FAIL_CHECK(error.what() << "\n" << text);
      }
    }
  }
  CHECK(windows >= 20);
  CHECK(offloads >= 20);
}

}  // namespace troupe
