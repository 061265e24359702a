#include <catch2/catch.hpp>

#include "modules/memory_meter.hpp"
#include "plan/pass_memory.hpp"
#include "tests/torch/kept.hpp"
#include "tests/torch/peak.hpp"
#include "tests/torch/processes.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kLayersOfJob = 8;
constexpr std::int64_t kUnits = 6;

/// A language model alone whose layers leave.
Config With(const LayerChoice& away, Layout layout, const Recompute& recompute = {}) {
  Config config = WithLayers(LongLanguage(layout, Precision::kFloat32), kLayersOfJob);
  config.schedule.micro_batch_size = 8;
  ModuleOf(config, "language").offload_activations = away;
  ModuleOf(config, "language").recompute = recompute;
  return config;
}

/// The bytes that the forwards and then the backwards of kUnits microbatches need on all ranks.
double PeakOf(const Config& config) {
  Job job(config);
  const auto data = LongData(8);
  const auto round = [&](std::int64_t first) {
    std::vector<std::function<void()>> work;
    for (int i = 0; i < config.cluster.ranks; ++i) {
      work.emplace_back([&, i] {
        StageProgram& program = job.Program("language", 0, 0, i);
        for (std::int64_t unit = first; unit < first + kUnits; ++unit) {
          const std::int64_t next = unit + 1 < first + kUnits ? kNoUnit : first;
          program.Forward({.unit = unit, .inputs = {}, .data = data, .next_backward = next});
        }
        for (std::int64_t unit = first; unit < first + kUnits; ++unit) {
          const std::int64_t next = unit + 1 < first + kUnits ? unit + 1 : kNoUnit;
          program.Backward({.unit = unit, .gradients = {}, .next_backward = next});
        }
      });
    }
    RunThreads(work);
  };
  round(0);  // leaves buffers of the library and sides
  BeginPeak();
  round(kUnits);
  return PeakBytes();
}

/// By how much `check` says that the peak on all ranks is lower.
double EstimatedSaving(const Config& config) {
  const UnitMemory one = EstimateUnit(config, "language", 0);
  return static_cast<double>(config.cluster.ranks) *
         (static_cast<double>(kUnits * one.away) - static_cast<double>(3 * one.largest_away));
}

double LargestLayer(const Config& config) {
  return static_cast<double>(config.cluster.ranks) *
         static_cast<double>(EstimateUnit(config, "language", 0).largest_away);
}

}  // namespace

TEST_CASE("layers whose activations leave need the memory of three", "[torch]") {
  const Layout layout = GENERATE(Layout{}, Layout{.tp = 2});
  const Recompute recompute = GENERATE(Recompute{}, Recompute{LayerPart::kLayer});
  const LayerChoice away =
      GENERATE(LayerChoice{.automatic = true}, LayerChoice{false, {1, 2, 4, 6}});
  const double all = PeakOf(With({}, layout, recompute));
  const Config config = With(away, layout, recompute);
  const double left = PeakOf(config);
  const double saved = EstimatedSaving(config);
  INFO(ToString(layout) << ": " << all << " without, " << left << " with, " << saved
                        << " estimated to be saved");
  CHECK(saved > 0);
  CHECK(left >= 0.9 * (all - saved) - LargestLayer(config));  // which may have left
  CHECK(left <= 1.1 * (all - saved));
  CHECK(SideMemoryBytes() == 0);
}

}  // namespace troupe
