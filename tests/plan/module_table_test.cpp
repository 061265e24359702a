#include "plan/search/module_table.hpp"

#include <catch2/catch.hpp>

#include "plan/cost/stage_cost.hpp"
#include "plan/layer_split.hpp"
#include "plan/memory.hpp"
#include "plan/stage_work.hpp"
#include "tests/plan/small_config.hpp"

namespace troupe {
namespace {

DeviceModel SomeDevice() {
  DeviceModel device = DeviceOfFlops(1e9);
  device.rates.forward.element_s = 3e-9;
  device.rates.backward.element_s = 5e-9;
  device.rates.forward.operation_s = 1e-6;
  device.topology = {
      .devices_per_node = 8, .inside = {.latency_s = 1e-6, .bytes_per_s = 1e9}, .between = {}};
  return device;
}

}  // namespace

TEST_CASE("stages from a table cost and hold what the stages of the job do", "[plan]") {
  const int pp = GENERATE(1, 2, 4);
  const int tp = GENERATE(1, 2);
  const int variant = GENERATE(0, 1, 2, 3);
  INFO("pp " << pp << " tp " << tp << " variant " << variant);
  Config config = SmallModulesConfig();
  ModuleConfig& language = config.modules[2];
  if (variant == 1) config.modules[0].frozen = language.frozen = true;
  if (variant == 2) config.modules[0].inline_in = "language";
  if (variant == 3) {
    config.run.precision = Precision::kBFloat16;
    language.recompute = {LayerPart::kMlpUp};
  }
  language.layout.tp = tp;
  const DeviceModel device = SomeDevice();
  const ModuleTable table(config, "language", 3, device);
  language.layout.pp = pp;
  std::vector<std::int64_t> sizes;
  for (const Interval& layers : SplitLayers(language)) sizes.push_back(layers.size());
  const std::vector<TablePart> stages = table.Stages(sizes);
  REQUIRE(stages.size() == static_cast<std::size_t>(pp));
  config.schedule.micro_batch_size = 3;
  for (int stage = 0; stage < pp; ++stage) {
    const TablePart& part = stages[static_cast<std::size_t>(stage)];
    const PassCost cost =
        CostOfStage(config, device, "language", stage, FullSamples(config, language, 3));
    CHECK(part.cost.forward.total() == Approx(cost.forward.total()));
    CHECK(part.cost.weights.total() == Approx(cost.weights.total()).margin(1e-12));
    const StageMemory memory = EstimateMemory(config, "language", stage);
    CHECK(WeightsOf(config, ShardingsOf(config, language)).BytesOf(part.held) ==
          Approx(static_cast<double>(memory.state())).epsilon(0.02));
    if (variant == 1) continue;  // what is upstream of the first stage decides about all
    CHECK(part.cost.inputs.total() == Approx(cost.inputs.total()));
    CHECK(part.kept * RowBytes(config) == Approx(static_cast<double>(memory.activations)));
  }
}

}  // namespace troupe
