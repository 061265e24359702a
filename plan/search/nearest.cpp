#include "plan/search/nearest.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "configs/schema.hpp"

namespace troupe {
namespace {

constexpr int kMostTimes = 16;  // as many devices

std::optional<Plan> FastestOn(const Config& config, const JobDevices& devices, int ranks) {
  Plans plans = BestPlans(SearchSpace(config, devices, {.ranks = ranks}), config, devices, 1);
  if (plans.best.empty()) return std::nullopt;
  return std::move(plans.best.front());
}

/// The numbers of devices that are tried, ascending.
std::vector<int> MoreRanks(int ranks, int of_node) {
  std::vector<int> numbers;
  const int most = std::min(kMostTimes * ranks, kMaxRanks);
  for (int power = 1; power < of_node; power *= 2) {
    if (power > ranks && power <= most) numbers.push_back(power);
  }
  for (int whole = (ranks / of_node + 1) * of_node; whole <= most; whole += of_node) {
    numbers.push_back(whole);
  }
  return numbers;
}

std::optional<NearestChange> WithMoreRanks(const Config& config, const JobDevices& devices,
                                           int ranks) {
  const std::vector<int> numbers = MoreRanks(ranks, devices.main.topology.devices_per_node);
  std::optional<NearestChange> found;
  const auto fits = [&](int number) {
    auto plan = FastestOn(config, devices, number);
    if (!plan) return false;
    found = NearestChange{"--gpus " + std::to_string(number), *std::move(plan)};
    return true;
  };
  // What fits on some devices fits on more. Doubling finds a number near the first one.
  std::size_t end = 1;
  while (end <= numbers.size() && !fits(numbers[end - 1])) end *= 2;
  std::size_t low = end / 2;
  std::size_t high = std::min(end - 1, numbers.size());
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (fits(numbers[middle])) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return found;
}

std::optional<NearestChange> OnLargerDevice(const Config& config, const JobDevices& devices,
                                            int ranks, const Surroundings& around) {
  std::vector<std::pair<JobDevices, std::string>> larger;
  const auto memory_of = [](const JobDevices& each) { return each.main.memory_bytes; };
  for (const std::string& name : around.devices) {
    JobDevices other = around.devices_of(name, config);
    if (memory_of(other) > memory_of(devices)) larger.emplace_back(std::move(other), name);
  }
  std::ranges::stable_sort(larger, {}, [&](const auto& each) { return memory_of(each.first); });
  for (const auto& [other, name] : larger) {
    if (auto plan = FastestOn(config, other, ranks)) {
      return NearestChange{"--device " + name, *std::move(plan)};
    }
  }
  return std::nullopt;
}

/// More devices of another kind, or none.
std::vector<NearestChange> OwnChanges(const Config& config, const JobDevices& devices, int ranks) {
  std::vector<NearestChange> changes;
  for (const auto& [module, own] : devices.own) {
    JobDevices other = devices;
    for (int times = 2; times <= kMostTimes; times *= 2) {
      if (times * own.number > kMaxRanks - ranks) break;
      other.own.at(module).number = times * own.number;
      auto plan = FastestOn(config, other, ranks);
      if (!plan) continue;
      changes.push_back({"--device-of " + module + "=" + own.device.name + ":" +
                             std::to_string(times * own.number),
                         *std::move(plan)});
      break;
    }
    other.own.erase(module);
    if (auto plan = FastestOn(config, other, ranks)) {
      changes.push_back({"without --device-of " + module, *std::move(plan)});
    }
  }
  return changes;
}

}  // namespace

std::vector<NearestChange> NearestChanges(const Config& config, int ranks,
                                          const Surroundings& around) {
  const JobDevices devices = around.devices_of(around.device, config);
  std::vector<NearestChange> changes = OwnChanges(config, devices, ranks);
  if (!changes.empty()) return changes;
  const auto add = [&](std::optional<NearestChange> change) {
    if (change) changes.push_back(*std::move(change));
  };
  add(WithMoreRanks(config, devices, ranks));
  add(OnLargerDevice(config, devices, ranks, around));
  if (config.optimizer.shard != OptimizerShard::kData) {
    Config sharded = config;
    sharded.optimizer.shard = OptimizerShard::kData;
    if (auto plan = FastestOn(sharded, devices, ranks)) {
      add(NearestChange{"--set optimizer.shard=data", *std::move(plan)});
    }
  }
  if (config.run.precision != Precision::kBFloat16) {
    Config rounded = config;
    rounded.run.precision = Precision::kBFloat16;
    try {
      const JobDevices other = around.devices_of(around.device, rounded);
      if (auto plan = FastestOn(rounded, other, ranks)) {
        add(NearestChange{"--set run.precision=bfloat16", *std::move(plan)});
      }
    } catch (const std::runtime_error&) {
      // The device was measured in another precision.
    }
  }
  return changes;
}

}  // namespace troupe
