// What passes wait for activations that go to host memory and come back, and where plans use it.
#include <algorithm>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "plan/cost/device_file.hpp"
#include "plan/cost/stage_cost.hpp"
#include "plan/cost/stage_price.hpp"
#include "plan/pass_memory.hpp"
#include "plan/search/planner.hpp"
#include "plan/search/search_job.hpp"
#include "plan/stage_work.hpp"
#include "tests/plan/small_config.hpp"

namespace troupe {
namespace {

Config OffloadingConfig() {
  Config config = SmallModulesConfig();
  config.modules[2].offload_activations = {.automatic = true};
  config.schedule.micro_batch_size = 4;
  return config;
}

PassCost CostWith(const Config& config, double host_bytes_per_s, const StepShape& shape) {
  DeviceModel device = DeviceOfFlops(1e9);
  device.host_bytes_per_s = host_bytes_per_s;
  return CostOfStage(config, device, "language", 0, shape);
}

/// A model whose layers take long enough to hide copies, on few GPUs.
Config LargeConfig() {
  Config config = LoadConfig("configs/vlm_7b.toml",
                             {"modules.language.layers=8", "modules.language.hidden=16384",
                              "modules.language.heads=128", "modules.language.kv_heads=16",
                              "modules.language.mlp_hidden=53248", "schedule.microbatches=64"})
                      .config;
  return config;
}

}  // namespace

TEST_CASE("a pass waits for copies of activations that it does not hide", "[plan]") {
  const Config config = OffloadingConfig();
  const StepShape full = FullSamples(config, config.modules[2], 4);
  const auto away = static_cast<double>(AwayBytes(config, "language", 0, 4));
  REQUIRE(away > 0.0);
  CHECK(away == static_cast<double>(EstimateUnit(config, "language", 0).away));
  const PassCost free = CostWith(config, 0.0, full);
  CHECK(free.forward[Spent::kCopies] == 0.0);

  const double forward_s = free.forward.total();
  const double backward_s = free.backward_s();
  REQUIRE(backward_s > forward_s);
  CHECK(CostWith(config, away / forward_s * 1.01, full).forward[Spent::kCopies] == 0.0);
  const PassCost between = CostWith(config, away / backward_s * 1.01, full);
  CHECK(between.forward.total() == Approx(backward_s / 1.01));
  CHECK(between.inputs[Spent::kCopies] == 0.0);
  const PassCost slow = CostWith(config, away / backward_s / 3.0, full);
  CHECK(slow.forward.total() == Approx(3.0 * backward_s));
  CHECK(slow.backward_s() == Approx(3.0 * backward_s));

  Config split = config;
  split.schedule.kind = ScheduleKind::kZbH1;
  const PassCost alone = CostWith(split, away / backward_s / 3.0, full);
  CHECK(alone.inputs.total() == Approx(3.0 * backward_s));
}

TEST_CASE("samples that are shorter have fewer activations to copy", "[plan]") {
  const Config config = OffloadingConfig();
  DeviceModel device = DeviceOfFlops(1e9);
  device.host_bytes_per_s = 1.0;
  StepShape half = FullSamples(config, config.modules[2], 4);
  half.tokens /= 2;
  const double copy_s = 0.5 * static_cast<double>(AwayBytes(config, "language", 0, 4));
  CHECK(CostWith(config, 1.0, half).forward.total() == Approx(copy_s));
  const StagePrice price(config, device, "language", 0);
  CHECK(price.Of({half}).forward.total() == Approx(copy_s));
}

TEST_CASE("known devices state their links to the host", "[plan]") {
  CHECK(ReadDevice("h100-80g", {}).host_bytes_per_s == 64e9);
  CHECK(ReadDevice("l40s-48g", {}).host_bytes_per_s == 32e9);
}

TEST_CASE("activations are offloaded where memory is short and copies are hidden", "[plan]") {
  const Config config = LargeConfig();
  DeviceModel device = ReadDevice("h100-80g", config.run);
  const auto fastest = [&] {
    const Plans plans = BestPlans(SearchSpace(config, device, {.ranks = 8}), config, device, 1);
    REQUIRE(!plans.best.empty());
    return plans.best.front();
  };
  const Plan best = fastest();
  REQUIRE(best.job.sink.offloads);
  CHECK(best.bytes <= device.memory_bytes);
  PlannedJob without = best.job;
  without.sink.offloads = false;
  CHECK(PlanOf(config, without, device).bytes > best.bytes);
  for (const Recompute& recompute : RecomputeLevels()) {
    for (const bool offloads : {false, true}) {
      PlannedJob other = best.job;
      other.sink.recompute = recompute;
      other.sink.offloads = offloads;
      const Plan plan = PlanOf(config, other, device);
      if (plan.bytes > 0.94 * device.memory_bytes) continue;
      CHECK(plan.cost.step_s >= best.cost.step_s * (1.0 - 1e-3));
    }
  }

  device.host_bytes_per_s = 1e9;  // copies would take longer than forwards
  const Plan slow = fastest();
  CHECK(!slow.job.sink.offloads);
  CHECK(slow.cost.step_s > best.cost.step_s);
}

}  // namespace troupe
