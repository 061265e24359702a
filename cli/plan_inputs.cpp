#include "cli/plan_inputs.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cli/profile/probes.hpp"
#include "cli/profile/traced_job.hpp"
#include "cluster/variables.hpp"
#include "data/row_source.hpp"
#include "layout/text.hpp"
#include "plan/cost/device_file.hpp"
#include "plan/cost/sample_list.hpp"
#include "plan/model_flops.hpp"
#include "plan/stage_work.hpp"

namespace troupe {
namespace {

/// Steps that are priced: their average varies little, and each is simulated for every plan.
constexpr int kSteps = 4;

/// The device that `flag` names.
DeviceModel DeviceFor(const std::string& flag, const std::string& name, const Config& config) {
  try {
    return ReadDevice(name, config.run);
  } catch (const std::runtime_error& error) {
    throw LaunchError(flag + ": " + error.what());
  }
}

double PerSample(std::int64_t sum, std::size_t samples) {
  return static_cast<double>(sum) / static_cast<double>(samples);
}

}  // namespace

DeviceModel NamedDevice(const std::string& name, const Config& config) {
  DeviceModel device = DeviceFor("--device", name, config);
  device.topology = With(config.cluster.topology, device.topology);
  const auto& peak = config.cluster.peak_tflops;  // profiles have none
  if (peak && device.peak_flops_per_s == 0.0) device.peak_flops_per_s = *peak * 1e12;
  return device;
}

JobDevices WithOwnDevices(DeviceModel main, int gpus, const std::vector<std::string>& stated,
                          const Config& config) {
  JobDevices devices(std::move(main));
  std::vector<std::string> encoders;
  for (const ModuleConfig& module : config.modules) {
    if (module.name != config.Sink().name) encoders.push_back(module.name);
  }
  int left = kMostDevices - gpus;
  for (const std::string& text : stated) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const std::size_t colon = std::max(std::min(text.rfind(':'), text.size()), equals);
    const std::string module = text.substr(0, equals);
    int number = 0;
    const char* const end = text.data() + text.size();
    const bool is_number =
        colon < text.size() && std::from_chars(text.data() + colon + 1, end, number).ptr == end;
    if (!is_number || number < 1 || number > kMostDevices) {
      throw LaunchError(
          "--device-of: expected MODULE=DEVICE:NUMBER, as in vision=l40s-48g:16, got \"" + text +
          "\"");
    }
    const std::string flag = "--device-of " + module;
    if (std::ranges::find(encoders, module) == encoders.end()) {
      throw LaunchError("--device-of: expected an encoder of CONFIG (" + Listed(encoders) +
                        "), got \"" + module + "\"; --device is for " + config.Sink().name);
    }
    if (number > left) {
      throw LaunchError(flag + ": expected at most " + std::to_string(kMostDevices) +
                        " devices in all, got " + std::to_string(number) + " besides " +
                        std::to_string(kMostDevices - left));
    }
    left -= number;
    if (devices.HasOwn(module)) throw LaunchError(flag + ": stated twice");
    const std::string name = text.substr(equals + 1, colon - equals - 1);
    devices.own[module] = {DeviceFor(flag, name, config), number};
  }
  return devices;
}

DeviceModel DeviceInNodes(const std::string& name, const Config& config, int gpus, int nodes) {
  DeviceModel device = NamedDevice(name, config);
  const auto stated = config.cluster.topology.devices_per_node;
  if (nodes == 0) {
    const auto& own = config.cluster.nodes;
    if (own.size() > 1 && !stated) {
      device.topology.devices_per_node = std::ranges::max(own, {}, &ClusterNode::devices).devices;
    }
    return device;
  }
  const std::string fault = "--nodes: " + Counted(gpus, "GPU") + " in " + Counted(nodes, "node");
  if (gpus % nodes != 0) {
    throw LaunchError(fault + ": expected a number that divides " + std::to_string(gpus));
  }
  const std::int64_t each = gpus / nodes;
  if (stated && *stated != each) {
    throw LaunchError(
        fault + " are " + std::to_string(each) +
        " in each, but cluster.topology.devices_per_node = " + std::to_string(*stated));
  }
  device.topology.devices_per_node = static_cast<int>(each);
  return device;
}

Workload WorkloadFrom(const SamplesFrom& from, const Config& config) {
  if (!from.list.empty()) {
    try {
      return StepsOfList(ReadSampleList(from.list, config), config, kSteps);
    } catch (const std::runtime_error& error) {
      throw LaunchError(std::string("--samples: ") + error.what());
    }
  }
  return from.data ? StepsOfData(config, 0, kSteps) : Workload();
}

Workload StepsOfData(const Config& config, int first, int steps) {
  Config drawn = config;
  drawn.data.order = DataOrder::kRandom;  // each plan has its own order
  const RowSource source(drawn);
  Workload workload;
  for (int step = first; step < first + steps; ++step) {
    workload.push_back(source.PlacedShapesOf(RoundOn(config, step, step)));
  }
  return workload;
}

std::string WorkloadText(const Workload& workload, const Config& config) {
  if (workload.empty()) return "full samples; --data prices those that the data has\n";
  std::vector<std::int64_t> tokens;
  std::int64_t sum = 0;
  for (const PlacedSamples& step : workload) {
    for (const auto& place : step) {
      for (const StepShape& sample : place) {
        tokens.push_back(sample.tokens);
        sum += sample.tokens;
      }
    }
  }
  if (tokens.empty()) return "";
  std::ranges::sort(tokens);
  std::string text = Formatted("samples of %.0f tokens on average", PerSample(sum, tokens.size())) +
                     " (" + std::to_string(tokens.front()) + " to " +
                     std::to_string(tokens.back()) + ")";
  for (const ModuleConfig& module : config.modules) {
    std::int64_t items = 0;
    for (const PlacedSamples& step : workload) {
      for (const auto& place : step) {
        for (const StepShape& sample : place) {
          const auto length = sample.lengths.find(module.name);
          if (length != sample.lengths.end()) items += length->second;
        }
      }
    }
    if (!module.model->field()) continue;
    const std::int64_t full = std::max<std::int64_t>(module.model->most_length(), 1);
    text += Formatted(", %.2f full items of ",
                      PerSample(items, tokens.size() * static_cast<std::size_t>(full))) +
            module.name;
  }
  return text + "\n";
}

std::string UnprofiledText(const Config& config, const JobDevices& devices) {
  std::string text;
  const Config probed = WithFewLayers(config);
  const std::int64_t samples = config.schedule.micro_batch_size;
  for (const ModuleConfig& module : config.modules) {
    const DeviceModel& device = devices.Of(module.name);
    if (device.modules.empty()) continue;
    const auto profiled = device.modules.find(module.name);
    if (profiled == device.modules.end()) {
      text += module.name + " was not profiled: rates of the other modules\n";
      continue;
    }
    double flops = 0.0;
    for (const PartFlops& part : StepFlops(probed, FullSamples(probed, probed.Sink(), samples))) {
      if (part.name == module.name) flops = part.flops.forward;
    }
    const double largest = profiled->second.largest_flops;
    if (largest <= 0.0) continue;  // rates of a run, not of a profile
    const double times = flops / largest;
    if (times <= kMostExtrapolated) continue;
    text += module.name + Formatted(
                              " is extrapolated: a microbatch has %.0f times the work of the "
                              "largest pass that was profiled\n",
                              times);
  }
  return text;
}

std::string OrderText(const Plan& plan, const JobDevices& devices, const Workload& workload) {
  Config other = plan.config;
  const bool balanced = other.data.order == DataOrder::kBalanced;
  other.data.order = balanced ? DataOrder::kRandom : DataOrder::kBalanced;
  const double other_s = PlanAsIs(other, devices, workload).cost.step_s;
  const double own_s = plan.cost.step_s;
  return std::string("plan 1 with data.order = ") + (balanced ? "\"random\"" : "\"balanced\"") +
         ": " + MsText(other_s) + Formatted(" ms, %+.1f%%\n", 100.0 * (other_s / own_s - 1.0));
}

/// Names the links between `number` devices that take no time because they were neither measured nor stated.
static std::string UnknownLinksText(const DeviceModel& device, int number) {
  const Topology& topology = device.topology;
  const auto unknown = [](const LinkRate& link) { return link.TimeOf(1.0) <= 0.0; };
  const auto line = [&device](const std::string& where) {
    return "links of " + device.name + " " + where + " are not known and take no time here\n";
  };
  std::string text;
  if (std::min(number, topology.devices_per_node) > 1 && unknown(topology.inside)) {
    text += line("inside a node");
  }
  if (number > topology.devices_per_node && unknown(topology.between)) {
    text += line("between nodes");
  }
  return text;
}

std::string OriginText(const Config& config, const JobDevices& devices, int gpus,
                       const Workload& workload) {
  const auto line = [](int number, const DeviceModel& kind) {
    return Counted(number, "device") + " of " + kind.name + ": " + Printable(kind.source);
  };
  const bool stated = config.cluster.topology != TopologyConfig{};
  std::string text =
      line(gpus, devices.main) + (stated ? "; but links as [cluster.topology] states" : "") + "\n";
  for (const ModuleConfig& module : config.modules) {
    const auto own = devices.own.find(module.name);
    if (own == devices.own.end()) continue;
    text += "for " + module.name + " " + line(own->second.number, own->second.device) + "\n";
  }
  std::string unknown = UnknownLinksText(devices.main, gpus);
  for (const auto& [module, own] : devices.own) {
    unknown += UnknownLinksText(own.device, own.number);
  }
  return text + "global batch " + std::to_string(config.global_batch()) + ", " +
         WorkloadText(workload, config) + UnprofiledText(config, devices) + unknown;
}

std::optional<Plan> NowOf(const Config& config, const JobDevices& devices,
                          const Workload& workload) {
  try {
    return PlanAsIs(config, devices, workload);
  } catch (const LayoutError&) {
    return std::nullopt;
  }
}

}  // namespace troupe
