#include "plan/search/nearest.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "plan/cost/device_file.hpp"

namespace troupe {
namespace {

DeviceModel DeviceNamed(const std::string& name, const Config& config) {
  return ReadDevice(name, config.run);
}

bool Fits(const Config& config, const std::string& device, int ranks) {
  const DeviceModel model = DeviceNamed(device, config);
  return !BestPlans(SearchSpace(config, model, {.ranks = ranks}), config, model, 1).best.empty();
}

/// The value of one argument; "" if it is not there.
std::string ValueOf(const std::vector<NearestChange>& changes, const std::string& argument) {
  for (const NearestChange& change : changes) {
    if (change.argument.starts_with(argument)) return change.argument.substr(argument.size());
  }
  return "";
}

}  // namespace

TEST_CASE("each change that is named is enough, and none smaller is", "[plan]") {
  const auto [ranks, device, layers] = GENERATE(table<int, std::string, int>(
      {{1, "h100-80g", 32}, {2, "l40s-48g", 64}, {8, "l40s-48g", 700}, {8, "l40s-48g", 900}}));
  INFO(ranks << " of " << device << ", layers " << layers);
  const Config config =
      LoadConfig("configs/vlm_7b.toml",
                 {"modules.language.layers=" + std::to_string(layers), "optimizer.shard=none",
                  "run.precision=float32", "schedule.microbatches=8"})
          .config;
  REQUIRE(!Fits(config, device, ranks));
  const auto changes = NearestChanges(config, ranks, {device, KnownDevices(), DeviceNamed});

  const std::string number = ValueOf(changes, "--gpus ");
  const int more = number.empty() ? 16 * ranks + 1 : std::stoi(number);
  CHECK(more > ranks);
  if (!number.empty()) CHECK(Fits(config, device, more));
  for (int fewer = 1; fewer <= 16 * ranks && fewer < more; ++fewer) {
    const bool tried = fewer > 8 ? fewer % 8 == 0 : (fewer & (fewer - 1)) == 0;
    if (tried) CHECK(!Fits(config, device, fewer));
  }

  const std::string larger = ValueOf(changes, "--device ");
  const double least = larger.empty() ? 1e99 : DeviceNamed(larger, config).memory_bytes;
  if (!larger.empty()) CHECK(Fits(config, larger, ranks));
  for (const std::string& name : KnownDevices()) {
    if (DeviceNamed(name, config).memory_bytes < least) CHECK(!Fits(config, name, ranks));
  }

  Config changed = config;
  changed.optimizer.shard = OptimizerShard::kData;
  CHECK(Fits(changed, device, ranks) == (ValueOf(changes, "--set optimizer.shard=") == "data"));
  changed = config;
  changed.run.precision = Precision::kBFloat16;
  CHECK(Fits(changed, device, ranks) == (ValueOf(changes, "--set run.precision=") == "bfloat16"));
  for (const NearestChange& change : changes) CHECK(change.plan.cost.step_s > 0.0);
}

}  // namespace troupe
