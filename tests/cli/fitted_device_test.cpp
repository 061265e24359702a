// What `troupe profile` fits to the passes of its probes, here passes that a known device would take.
#include "cli/profile/fitted_device.hpp"

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "plan/cost/job_cost.hpp"

namespace troupe {
namespace {

constexpr const char* kShapes = "configs/shapes.toml";

/// What a rank does; a collective takes more of it than an operation.
DeviceModel Cores() {
  DeviceModel device;
  device.topology.devices_per_node = 64;
  for (const char* name : {"vision", "language"}) {
    const double slower = name == std::string("vision") ? 1.5 : 1.0;
    device.modules[name].rates = {
        .forward = {.operation_s = 8e-6 * slower, .linear_flop_s = 3e-11, .element_s = 9e-10},
        .backward = {.operation_s = 5e-6 * slower, .linear_flop_s = 4e-11, .element_s = 11e-10}};
  }
  device.collective_s = 13e-6;
  device.sum_byte_s = 2e-10;
  return device;
}

/// The same with the links over which ranks wait for each other.
DeviceModel OnTheClock() {
  DeviceModel device = Cores();
  device.topology.inside = {.latency_s = 40e-6, .bytes_per_s = 2e9};
  return device;
}

std::vector<PlacedSamples> BatchesOf(const Config& config) {
  RowSource source(config);
  std::vector<PlacedSamples> batches;
  for (std::int64_t batch = 0; batch < 2; ++batch) {
    batches.push_back(source.PlacedShapesOf(RoundOn(config, batch, batch)));
  }
  return batches;
}

/// The passes of a probe, nine of ten repetitions disturbed.
MeasuredProbe ProbeOn(const Probe& probe) {
  const auto plan = std::make_shared<const JobPlan>(probe.config);
  TracedJob job{plan, BatchesOf(probe.config), {}, {}};
  for (const StagePlan& stage : plan->stages()) {
    const ModulePlan& module = plan->ModuleOf(stage.module);
    const auto units = module.units.In(probe.config.schedule.microbatches).count;
    for (std::int64_t place = 0; place < 2 * units; ++place) {
      for (const WorkKind kind : {WorkKind::kForward, WorkKind::kBackward}) {
        MeasuredPass pass{.stage = stage.stage,
                          .kind = kind,
                          .batch = place / units,
                          .unit = place % units,
                          .core_s = {},
                          .wall_s = {}};
        const auto time =
            TimeOfPass(*plan, job.batches[static_cast<std::size_t>(pass.batch)], pass);
        for (int i = 0; i < 10; ++i) {
          const double slower = i == 4 ? 1.0 : 1.1 + 0.2 * i;
          pass.core_s.push_back(slower * time(Cores()));
          pass.wall_s.push_back(slower * time(OnTheClock()));
        }
        job.passes.push_back(pass);
      }
    }
  }
  return {probe.use, std::move(job)};
}

DeviceModel Fitted() {
  std::vector<MeasuredProbe> probes;
  for (const Probe& probe : ProbesOf(LoadConfig(kShapes).config, 0))
    probes.push_back(ProbeOn(probe));
  return FitDevice(probes).device;
}

double StepOn(const DeviceModel& device, const std::vector<std::string>& settings) {
  const JobPlan plan(LoadConfig(kShapes, settings).config);
  return CostOfJob(plan, device).passes_s;
}

}  // namespace

TEST_CASE("a device that made the times of the probes is found again, collectives too", "[cli]") {
  const DeviceModel fitted = Fitted();
  CHECK(fitted.collective_s == Approx(13e-6).epsilon(0.02));
  CHECK(fitted.topology.inside.latency_s == Approx(40e-6).epsilon(0.02));
  // Layouts of which no probe had one: tp 2 in two stages, more layers, other samples.
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"schedule.micro_batch_size=6"},
      {"modules.language.layers=7", "schedule.micro_batch_size=12"},
      {"modules.language.layout={tp=4}", "schedule.micro_batch_size=3"}};
  for (const auto& settings : cases) {
    INFO((settings.empty() ? "" : settings.front()));
    CHECK(StepOn(fitted, settings) == Approx(StepOn(OnTheClock(), settings)).epsilon(0.02));
  }
}

}  // namespace troupe
