// What a plan is made from, besides the configuration: the device, and the samples of its steps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "configs/schema.hpp"
#include "plan/cost/job_devices.hpp"
#include "plan/search/planner.hpp"

namespace troupe {

/// Returns the device that --device names, with the links that the configuration states. Throws
/// LaunchError.
DeviceModel NamedDevice(const std::string& name, const Config& config);

/// Returns the same if `gpus` of them are in `nodes` machines; 0: as many in each as the device says. Throws
/// LaunchError if the machines cannot have as many each, or the configuration states another number.
DeviceModel DeviceInNodes(const std::string& name, const Config& config, int gpus, int nodes);

/// The most devices of a job.
inline constexpr int kMostDevices = kMaxRanks;

/// Returns the devices of a job with `gpus` of `main` and those that --device-of states:
/// "vision=l40s-48g:16". Throws LaunchError.
JobDevices WithOwnDevices(DeviceModel main, int gpus, const std::vector<std::string>& stated,
                          const Config& config);

/// Where samples come from.
struct SamplesFrom {
  bool data = false;  ///< data.train
  std::string list;   ///< or this file of CSV
};

/// Returns some steps of these samples; none if every sample is to be full. Throws DataError, and
/// LaunchError for a fault of the list.
Workload WorkloadFrom(const SamplesFrom& from, const Config& config);

/// Returns the samples of `steps` steps from step `first` on that data.train has. Throws DataError.
Workload StepsOfData(const Config& config, int first, int steps);

/// "samples of 55 tokens on average (27 to 87), 0.98 full items of vision\n"
std::string WorkloadText(const Workload& workload, const Config& config);

/// Returns a line for each module that the device's profile does not have, or whose forward of a microbatch, of few
/// layers, has more than kMostExtrapolated times the work of the largest that was profiled.
std::string UnprofiledText(const Config& config, const JobDevices& devices);
inline constexpr double kMostExtrapolated = 4.0;

/// Returns what a plan on `gpus` of the main devices rests on: where their numbers are from, the samples of a
/// step, and UnprofiledText.
std::string OriginText(const Config& config, const JobDevices& devices, int gpus,
                       const Workload& workload);

/// Returns what data.order = "balanced" saves in a plan.
std::string OrderText(const Plan& plan, const JobDevices& devices, const Workload& workload);

/// Returns the configuration as it stands, or nothing if it cannot run.
std::optional<Plan> NowOf(const Config& config, const JobDevices& devices,
                          const Workload& workload);

}  // namespace troupe
