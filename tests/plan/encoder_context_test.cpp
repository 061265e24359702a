// Plans with encoders whose images are cut over cp.
#include <algorithm>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "plan/cost/device_file.hpp"
#include "plan/cost/stage_cost.hpp"
#include "plan/memory.hpp"
#include "plan/process_plan.hpp"
#include "plan/search/module_table.hpp"
#include "plan/search/planner.hpp"
#include "plan/stage_work.hpp"
#include "tests/plan/small_config.hpp"

namespace troupe {

TEST_CASE("a table of an encoder costs and holds what its stages cut over cp do", "[plan]") {
  const int cp = GENERATE(1, 2, 4);
  const int tp = GENERATE(1, 2);
  INFO("cp " << cp << " tp " << tp);
  Config config = SmallModulesConfig();
  ModuleConfig& vision = config.modules[0];
  vision.layout = {.tp = tp, .cp = cp};
  config.schedule.micro_batch_size = 4;
  DeviceModel device = DeviceOfFlops(1e9);
  device.rates.forward.element_s = 3e-9;
  device.topology = {
      .devices_per_node = 8, .inside = {.latency_s = 1e-6, .bytes_per_s = 1e9}, .between = {}};
  AlikeLayers layers(vision);
  const ModuleTable table(config, "vision", 4, device, {}, layers);
  const auto stages = table.Stages(layers.RunsOf(vision));
  REQUIRE(stages.size() == 1);
  const PartSums& part = stages.front().each;
  const PassCost cost = CostOfStage(config, device, "vision", 0, FullSamples(config, vision, 4));
  CHECK(part.pass_s - part.backward_s == Approx(cost.forward.total()));
  CHECK(part.backward_s == Approx(cost.backward_s()));
  CHECK((cost.forward[Spent::kContext] + cost.hidden_s > 0.0) == (cp > 1));
  CHECK(part.kept_bytes == Approx(static_cast<double>(EstimateUnit(config, "vision", 0).kept)));
}

TEST_CASE("an encoder with fewer samples than ranks is cut over cp", "[plan]") {
  const Config config = LoadConfig("configs/vlm_7b.toml",
                                   {"modules.vision.image_size=1344",
                                    "modules.language.context=16384", "schedule.microbatches=2"})
                            .config;
  REQUIRE(config.global_batch() == 2);
  const DeviceModel device = ReadDevice("h100-80g", config.run);
  const auto jobs = SearchSpace(config, device, {.ranks = 8}).Best(1.5);
  REQUIRE(!jobs.empty());
  const auto has_cp = [](const PlannedJob& job) { return job.encoders.front().layout.cp > 1; };
  CHECK(has_cp(jobs.front()));
  for (const PlannedJob& job : jobs) {
    if (!has_cp(job)) continue;
    const Plan plan = PlanOf(config, job, device);
    INFO(ToString(job.encoders.front().layout) << " with " << ToString(job.sink.layout));
    CHECK(plan.fits());
    CHECK(plan.cost.step_s == Approx(job.step_s).epsilon(0.15));
    // Half the cp and twice the replicas would leave ranks without a sample.
    const Layout& layout = job.encoders.front().layout;
    CHECK(config.global_batch() % (2 * layout.dp) != 0);
  }
}

TEST_CASE("a table holds the experts that ranks have, cut over ep and etp", "[plan]") {
  const auto [ep, etp] = GENERATE(table<int, int>({{1, 1}, {4, 1}, {2, 2}, {1, 4}, {4, 2}}));
  INFO("ep " << ep << " etp " << etp);
  Config config = LoadConfig("configs/shapes_experts.toml").config;
  ModuleConfig& language = *std::ranges::find(config.modules, "language", &ModuleConfig::name);
  language.layout = {.tp = 2, .dp = 4, .ep = ep, .etp = etp};
  AlikeLayers layers(language);
  const ModuleTable table(config, "language", 4, DeviceOfFlops(1e9), {}, layers);
  const auto stages = table.Stages(layers.RunsOf(language));
  REQUIRE(stages.size() == 1);
  CHECK(WeightsOf(config, ShardingsOf(config, language)).BytesOf(stages.front().each.held) ==
        Approx(static_cast<double>(EstimateMemory(config, "language", 0).state())).epsilon(0.02));
}

TEST_CASE("experts are cut over etp where they do not fit otherwise", "[plan]") {
  Config config = LoadConfig("configs/vlm_7b.toml",
                             {"modules.language.experts=2", "modules.language.experts_per_token=2",
                              "modules.language.expert_hidden=65536", "modules.language.layers=2"})
                      .config;
  config.optimizer.shard = OptimizerShard::kNone;
  const DeviceModel device = ReadDevice("l40s-48g", config.run);
  const auto etp_of = [&](double memory_bytes) {
    DeviceModel other = device;
    other.memory_bytes = memory_bytes;
    const Plans plans = BestPlans(SearchSpace(config, other, {.ranks = 8}), config, other, 1);
    return plans.best.empty() ? 0 : plans.best.front().job.sink.layout.etp;
  };
  CHECK(etp_of(1e12) == 1);
  CHECK(etp_of(20e9) > 1);
}

}  // namespace troupe
