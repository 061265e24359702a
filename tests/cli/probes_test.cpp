// The small jobs that `troupe profile` measures.
#include "cli/profile/probes.hpp"

#include <catch2/catch.hpp>

#include "cli/plan_inputs.hpp"
#include "configs/loader.hpp"
#include "kinds/vit.hpp"
#include "plan/model_flops.hpp"
#include "plan/stage_work.hpp"

namespace troupe {

TEST_CASE("probes of a large model have few layers and random weights", "[cli]") {
  Config config = LoadConfig("configs/vlm_7b.toml").config;
  for (ModuleConfig& module : config.modules) module.weights = "hf:nowhere";
  config.edges.front().through->weights = "hf:nowhere";
  const auto probes = ProbesOf(config);
  REQUIRE(probes.size() > 3);
  for (const Probe& probe : probes) {
    INFO(probe.what);
    for (const ModuleConfig& module : probe.config.modules) {
      CHECK(module.model->split_layers()->number == 6);
      CHECK(!module.weights);
      CHECK(module.layout.pp <= 3);
    }
    CHECK(!probe.config.edges.front().through->weights);
  }
}

TEST_CASE("an encoder keeps its last layers apart from those it leaves out", "[cli]") {
  VitConfig vit;
  vit.layers = 24;
  vit.feature_layer = -2;
  vit.KeepLayers(6);
  CHECK(vit.built_layers() == 6);
  CHECK(vit.layers == 7);
  vit.KeepLayers(9);
  CHECK(vit.built_layers() == 6);
  vit.layers = 24;
  vit.feature_layer = 20;
  vit.KeepLayers(6);
  CHECK(vit.built_layers() == 6);
  CHECK(vit.layers >= 6);
}

TEST_CASE("a model with more layers than were profiled is not extrapolated", "[cli]") {
  Config config = LoadConfig("configs/vlm_7b.toml").config;
  DeviceModel device = DeviceOfFlops(1e12);
  // As a profile of six layers has it.
  Config probed = WithFewLayers(config);
  const auto flops =
      StepFlops(probed, FullSamples(probed, probed.Sink(), config.schedule.micro_batch_size));
  for (const PartFlops& part : flops) {
    if (config.Find(part.name) == nullptr) continue;
    device.modules[part.name].largest_flops = part.flops.forward / 2.0;
  }
  CHECK(UnprofiledText(config, device).empty());
  device.modules["language"].largest_flops /= 4.0;
  CHECK_THAT(UnprofiledText(config, device),
             Catch::Contains("language is extrapolated: a microbatch has 8 times"));
}

}  // namespace troupe
