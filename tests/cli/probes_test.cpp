// The small jobs that `troupe profile` measures.
#include "cli/profile/probes.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "cli/plan_inputs.hpp"
#include "configs/loader.hpp"
#include "kinds/vit.hpp"
#include "plan/cost/device_file.hpp"
#include "plan/job_plan.hpp"
#include "plan/model_flops.hpp"
#include "plan/stage_work.hpp"

namespace troupe {

TEST_CASE("probes of a large model have few layers and random weights", "[cli]") {
  Config config = LoadConfig("configs/vlm_7b.toml").config;
  for (ModuleConfig& module : config.modules) module.weights = "hf:nowhere";
  config.edges.front().through->weights = "hf:nowhere";
  const auto probes = ProbesOf(config, 8);
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

TEST_CASE("probes that need more GPUs than there are share one, in turn", "[cli]") {
  const Config config = LoadConfig("configs/vlm_7b.toml").config;
  const auto many = ProbesOf(config, 8);
  const auto one = ProbesOf(config, 1);
  const auto has_tp = [](const Probe& probe) {
    return std::ranges::any_of(probe.config.modules,
                               [](const ModuleConfig& module) { return module.layout.tp > 1; });
  };
  CHECK(std::ranges::any_of(many, has_tp));
  CHECK(std::ranges::none_of(one, has_tp));
  REQUIRE(one.size() > 2);
  for (const Probe& probe : one) {
    INFO(probe.what);
    const ClusterConfig& cluster = probe.config.cluster;
    CHECK(cluster.ranks_per_gpu == cluster.ranks);
    CHECK((cluster.ranks == 1 || probe.config.schedule.microbatches == 1));
    CHECK_NOTHROW(JobPlan(probe.config));
  }
  for (const Probe& probe : many) CHECK(probe.config.cluster.ranks_per_gpu == 1);
}

TEST_CASE("links that are not known are named", "[cli]") {
  const Config config = LoadConfig("configs/vlm_7b.toml").config;
  DeviceModel device = DeviceOfFlops(1e12);
  device.topology.devices_per_node = 8;
  const auto text_for = [&](int gpus) { return OriginText(config, device, gpus, {}); };
  const auto inside = Catch::Contains(" inside a node are not known");
  const auto between = Catch::Contains(" between nodes are not known");
  CHECK_THAT(text_for(1), !inside && !between);
  CHECK_THAT(text_for(8), inside && !between);
  CHECK_THAT(text_for(16), inside && between);
  device.topology.devices_per_node = 1;
  CHECK_THAT(text_for(8), !inside && between);
  device.topology.devices_per_node = 8;
  device.topology.inside.bytes_per_s = 1e9;
  CHECK_THAT(text_for(16), !inside && between);
  device.topology.between.latency_s = 1e-6;  // a fit may find that bytes take no time
  CHECK_THAT(text_for(16), !inside && !between);
  device.topology.between.latency_s = 0.0;
  JobDevices two(ReadDevice("h100-80g", config.run));
  two.own["vision"] = {device, 16};
  CHECK_THAT(OriginText(config, two, 16, {}), !inside && between);
}

TEST_CASE("KeepLayers counts only the layers up to the feature layer", "[cli]") {
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
  CHECK(vit.layers == 10);
  CHECK(vit.feature_layer == 6);
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
  // Nor has six layers to be divided among as many stages.
  ModuleConfig& language = *std::ranges::find(config.modules, "language", &ModuleConfig::name);
  language.layout = {.pp = 8};
  CHECK(UnprofiledText(config, device).empty());
  language.layout = {.pp = 2};
  language.layers_per_stage = {10, 22};
  CHECK(UnprofiledText(config, device).empty());
  device.modules["language"].largest_flops /= 4.0;
  CHECK_THAT(UnprofiledText(config, device),
             Catch::Contains("language is extrapolated: a microbatch has 8 times"));
}

}  // namespace troupe
