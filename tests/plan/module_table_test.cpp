#include "plan/search/module_table.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "kinds/llama.hpp"
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
  AlikeLayers layers(language);
  const ModuleTable table(config, "language", 3, device, {}, layers);
  language.layout.pp = pp;
  std::vector<PartSums> stages;
  for (const StageSums& same : table.Stages(layers.RunsOf(language))) {
    for (int i = 0; i < same.stages; ++i) stages.push_back(same.each);
  }
  REQUIRE(stages.size() == static_cast<std::size_t>(pp));
  double largest_s = 0.0;
  for (const PartSums& stage : stages) largest_s = std::max(largest_s, stage.pass_s);
  CHECK(table.LeastOfLargest(pp) <= largest_s);
  config.schedule.micro_batch_size = 3;
  for (int stage = 0; stage < pp; ++stage) {
    const PartSums& part = stages[static_cast<std::size_t>(stage)];
    const PassCost cost =
        CostOfStage(config, device, "language", stage, FullSamples(config, language, 3));
    CHECK(part.pass_s - part.backward_s == Approx(cost.forward.total()));
    CHECK(part.weights_s == Approx(cost.weights.total()).margin(1e-12));
    const StageMemory memory = EstimateMemory(config, "language", stage);
    CHECK(WeightsOf(config, ShardingsOf(config, language)).BytesOf(part.held) ==
          Approx(static_cast<double>(memory.state())).epsilon(0.02));
    if (variant == 1) continue;  // what is upstream of the first stage decides about all
    CHECK(part.backward_s == Approx(cost.backward_s()));
    CHECK(part.kept_bytes ==
          Approx(static_cast<double>(EstimateUnit(config, "language", stage).kept)));
  }
}

TEST_CASE("stages with layers of two kinds, and of one, are in runs", "[plan]") {
  Config config = SmallModulesConfig();
  ModuleConfig& language = config.modules[2];
  LlamaConfig llama;
  llama.layers = 12;
  llama.experts = {.count = 4, .hidden = 8, .every = 2};
  language.model = llama;
  AlikeLayers layers(language);
  REQUIRE(layers.num_kinds() == 2);
  CHECK(layers.FirstOf(0) == 0);
  CHECK(layers.FirstOf(1) == 1);
  language.layout.pp = 6;
  const std::vector<StageRun>& runs = layers.RunsOf(language);
  REQUIRE(runs.size() == 3);
  CHECK(runs[1].stages == 4);
  CHECK(runs[1].of_kind == std::vector<std::int64_t>{1, 1});
  language.layout.pp = 12;
  CHECK(layers.RunsOf(language).size() == 12);  // each differs from its neighbours
}

}  // namespace troupe
