// What passes need of memory, and when a rank holds most.
#include <algorithm>
#include <array>
#include <random>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "plan/job_plan.hpp"
#include "plan/memory.hpp"
#include "plan/process_plan.hpp"
#include "tests/plan/small_config.hpp"

namespace troupe {
namespace {

// The small configuration: 16 tokens of 16, with an MLP of 24 and its gate.
constexpr std::size_t kFloat = 4;
constexpr std::size_t kTokenRows = 16;
constexpr std::size_t kNarrow = 16;
constexpr std::size_t kWideRow = 24;
// Logits, and the gradients of what the head reads, of all rows and of a chunk, which has all.
constexpr std::size_t kLossElements = kTokenRows * (21 + 2 * kNarrow);

std::size_t LayerBackward(Recompute again) {
  Config config = SmallModulesConfig();
  config.modules[2].recompute = again;
  config.modules[2].layout.pp = 2;
  return EstimateUnit(config, "language", 0).backward;
}

std::size_t RankPeak(const std::vector<std::string>& overrides) {
  const JobPlan plan(LoadConfig("configs/shapes.toml", overrides).config);
  std::size_t peak = 0;
  for (const StageNeed& stage : StageNeeds(plan, ProcessPlan(plan.config().cluster))) {
    const auto held = stage.passes.find(0);
    if (held != stage.passes.end()) peak += held->second.activations;
  }
  return peak;
}

TEST_CASE("a backward has the gradients of a layer's wide rows", "[modules]") {
  const std::size_t gradients = kNarrow + 3 * kWideRow;
  CHECK(LayerBackward({}) == kFloat * kTokenRows * gradients);
  CHECK(LayerBackward(Recompute{LayerPart::kAttention}) == kFloat * kTokenRows * gradients);
  // The norm's rows, the wide rows, and what is computed of them.
  CHECK(LayerBackward(Recompute{LayerPart::kMlpUp}) ==
        kFloat * kTokenRows * (gradients + kNarrow + 3 * kWideRow));
  CHECK(LayerBackward(Recompute{LayerPart::kMlp}) ==
        kFloat * kTokenRows * (gradients + 2 * kNarrow + 3 * kWideRow));
  // All that a layer keeps, with its output in place of its input.
  CHECK(LayerBackward(Recompute{LayerPart::kLayer}) ==
        kFloat * kTokenRows * (gradients + 4 * kNarrow + 2 * kNarrow + 8 + 3 * kWideRow + 8));
}

TEST_CASE("a loss comes before the layers, whose backward begins without the head's inputs",
          "[modules]") {
  Config config = SmallModulesConfig();
  CHECK(EstimateUnit(config, "language", 0).backward ==
        kFloat * std::max(kLossElements, kTokenRows * (3 * kWideRow + kNarrow - 2 * kNarrow)));
  config.modules[2].As<LlamaConfig>().mlp_hidden = 240;
  CHECK(EstimateUnit(config, "language", 0).backward ==
        kFloat * kTokenRows * (720 + kNarrow - 2 * kNarrow));
}

TEST_CASE("a stage that trains nothing needs one layer for a while", "[modules]") {
  Config config = SmallModulesConfig();
  for (ModuleConfig& module : config.modules) module.frozen = true;
  for (EdgeConfig& edge : config.edges) edge.through->frozen = true;
  const UnitMemory unit = EstimateUnit(config, "vision", 0);
  CHECK(unit.kept == 0);
  CHECK(unit.backward == 0);
  CHECK(unit.forward >= kFloat * 5 * (3 * 8 + 2 * 12));
}

TEST_CASE("a CPU computes short rows of the MLP in float32", "[modules]") {
  Config config = SmallModulesConfig();
  config.modules[2].layout.pp = 2;
  config.run.precision = Precision::kBFloat16;
  const std::size_t on_cpu = EstimateUnit(config, "language", 0).backward;
  CHECK(on_cpu == kTokenRows * (2 * kNarrow + 4 * 6 * kWideRow));
  config.cluster.backend = Backend::kCuda;
  CHECK(EstimateUnit(config, "language", 0).backward == 2 * kTokenRows * (kNarrow + 3 * kWideRow));
}

TEST_CASE("a rank with several stages holds the most of them together, not the most of each",
          "[cli]") {
  const std::vector<std::string> interleaved = {"schedule.kind=interleaved", "schedule.chunks=2",
                                                "edges.vision.language.credits=8"};
  const JobPlan plan(LoadConfig("configs/shapes.toml", interleaved).config);
  std::size_t of_each = 0;
  for (const StagePlan& stage : plan.stages()) {
    const auto ranks = plan.AllRanksOf(stage);
    if (std::ranges::find(ranks, 0) == ranks.end()) continue;
    const std::string& module = plan.ModuleOf(stage.module).config->name;
    of_each +=
        static_cast<std::size_t>(stage.kept) * EstimateUnit(plan.config(), module, stage.pp).kept;
  }
  CHECK(RankPeak(interleaved) < of_each);
  CHECK(2 * RankPeak(interleaved) > of_each);
}

TEST_CASE("gpipe keeps all microbatches, 1f1b as many as there are stages", "[cli]") {
  const std::size_t few = RankPeak({"schedule.microbatches=2"});
  CHECK(RankPeak({"schedule.microbatches=8"}) == few);
  CHECK(RankPeak({"schedule.microbatches=8", "schedule.kind=gpipe",
                  "edges.vision.language.credits=8"}) > 3 * few);
}

// Numbers of units follow from rules, whatever passes take.
TEST_CASE("passes of other lengths keep no more units than passes of equal length", "[cli]") {
  std::mt19937 draw(5);
  std::uniform_int_distribution<std::int64_t> length(1, 20);
  for (const std::vector<std::string>& overrides : std::vector<std::vector<std::string>>{
           {"schedule.microbatches=8"},
           {"schedule.microbatches=8", "schedule.kind=zb-h1"},
           {"schedule.microbatches=8", "schedule.kind=gpipe", "edges.vision.language.credits=8"},
           {"schedule.microbatches=8", "schedule.kind=interleaved", "schedule.chunks=2",
            "edges.vision.language.credits=8"}}) {
    const JobPlan plan(LoadConfig("configs/shapes.toml", overrides).config);
    for (int round = 0; round < 20; ++round) {
      std::vector<std::array<std::int64_t, 3>> lengths;
      for (std::size_t i = 0; i < plan.stages().size(); ++i) {
        lengths.push_back({length(draw), length(draw), length(draw)});
      }
      const auto duration = [&](int stage, const Pass& pass) {
        return lengths[At(stage)][static_cast<std::size_t>(pass.kind)];
      };
      const Simulation other =
          Simulate(plan.graph(), plan.schedule(), duration, plan.config().schedule.microbatches);
      for (const StagePlan& stage : plan.stages()) {
        INFO(overrides.back() << ", " << plan.graph().StageName(stage.stage));
        CHECK(PeakInFlight(other, stage.stage) <= stage.kept);
      }
    }
  }
}

}  // namespace
}  // namespace troupe
