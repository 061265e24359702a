// Closed forms of pipelines and their bounds, against counting and trying.
#include "plan/search/pipeline.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "plan/cost/device_file.hpp"
#include "plan/search/choices.hpp"
#include "plan/search/sink_ways.hpp"
#include "schedule/schedule.hpp"

namespace troupe {
namespace {

/// The most units that each stage keeps at one time, by following the orders.
std::vector<std::int64_t> CountKept(int pp, int chunks, std::int64_t units) {
  std::vector<std::int64_t> now(static_cast<std::size_t>(pp) * static_cast<std::size_t>(chunks));
  std::vector<std::int64_t> most(now.size());
  for (const DeviceOrder& order : InterleavedOrders(pp, chunks, units)) {
    for (const StagePass& at : order) {
      const auto stage = static_cast<std::size_t>(at.stage);
      now[stage] += at.pass.kind == PassKind::kForward ? 1 : -1;
      most[stage] = std::max(most[stage], now[stage]);
    }
  }
  return most;
}

/// All ways that fit, with offloaded activations or without, and whether each takes at least what its set
/// says.
std::vector<SinkOption> AllWays(const Config& config, const DeviceModel& device, int ranks,
                                bool offloads = false) {
  SearchJob job(config, device, {.ranks = ranks});
  SinkWays ways(job);
  std::vector<SinkOption> all;
  for (std::size_t set = 0; set < ways.least_s().size(); ++set) {
    for (const SinkOption& way : ways.Price(set)) {
      CHECK(StepTime({}, way, {}) >= ways.least_s()[set]);
      if (ways.PointOf(way.group).offloads == offloads) all.push_back(way);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("interleaved stages keep as many units as their orders say", "[plan]") {
  for (int pp = 1; pp <= 7; ++pp) {
    for (int chunks = 1; chunks <= 4; ++chunks) {
      for (int turns = 1; turns <= 6; ++turns) {
        INFO("pp " << pp << " chunks " << chunks << " turns " << turns);
        const auto kept = CountKept(pp, chunks, turns * pp);
        for (int stage = 0; stage < pp * chunks; ++stage) {
          CHECK(KeptInterleaved(pp, chunks, stage % pp, stage / pp, turns * pp) ==
                kept[static_cast<std::size_t>(stage)]);
        }
      }
    }
  }
}

TEST_CASE("sets of ways leave out none that fits, and none is faster than its set", "[plan]") {
  const std::string path =
      GENERATE(as<std::string>(), "configs/vlm_7b.toml", "configs/shapes_experts.toml");
  const Config config = LoadConfig(path).config;
  DeviceModel device = ReadDevice("a100-80g", config.run);
  device.memory_bytes = 1e15;
  const auto all = AllWays(config, device, 16);
  // Half of the ways fit.
  const double most_bytes = 0.94 * device.memory_bytes;
  std::vector<double> bytes;
  for (const SinkOption& way : all) bytes.push_back(most_bytes - way.free_bytes);
  std::ranges::sort(bytes);
  REQUIRE(bytes.size() > 100);
  const double half = bytes[bytes.size() / 2] * 1.000001;
  device.memory_bytes = half / 0.94;
  const auto fitting = AllWays(config, device, 16);
  CHECK(fitting.size() ==
        static_cast<std::size_t>(std::ranges::upper_bound(bytes, half) - bytes.begin()));

  // With less memory, ways that offload activations fit as well as before.
  device.host_bytes_per_s = 1e15;
  const auto offloading = AllWays(config, device, 16, true);
  REQUIRE(offloading.size() > 100);
  const double fewer = 0.9 * half;
  const auto fit_fewer = std::ranges::count_if(
      offloading, [&](const SinkOption& way) { return half - way.free_bytes <= fewer; });
  CHECK(fit_fewer > 5);
  device.memory_bytes = fewer / 0.94;
  CHECK(static_cast<std::ptrdiff_t>(AllWays(config, device, 16, true).size()) >= fit_fewer);
}

}  // namespace troupe
