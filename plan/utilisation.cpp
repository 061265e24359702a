#include "plan/utilisation.hpp"

#include <algorithm>
#include <map>

#include "layout/text.hpp"
#include "plan/model_flops.hpp"
#include "plan/stage_parts.hpp"
#include "plan/stage_work.hpp"

namespace troupe {
namespace {

double DevicesOf(const Config& config, std::ptrdiff_t ranks) {
  const bool shared = config.cluster.backend == Backend::kCuda;
  return static_cast<double>(ranks) / (shared ? config.cluster.ranks_per_gpu : 1);
}

/// The number of ranks that a module or projector runs on.
std::ptrdiff_t RanksOfPart(const Config& config, const std::string& part) {
  const auto edge = std::ranges::find_if(config.edges, [&part](const EdgeConfig& each) {
    return each.through && ProjectorName(each) == part;
  });
  const bool projects = edge != config.edges.end();
  const std::string& name = !projects                                  ? part
                            : edge->through->on == ProjectorEnd::kFrom ? edge->from
                                                                       : edge->to;
  const ModuleConfig& module = FindModule(config, name);
  return std::ssize((module.inline_in ? FindModule(config, *module.inline_in) : module).ranks);
}

/// The operations of each part.
std::map<std::string, double> FlopsOf(const Config& config, const std::vector<StepShape>& samples) {
  std::map<std::string, double> flops;
  for (const StepShape& shape : ByLength(samples)) {
    for (const PartFlops& part : StepFlops(config, shape)) flops[part.name] += part.flops.total();
  }
  return flops;
}

}  // namespace

Utilisation UtilisationOf(const Config& config, const std::vector<StepShape>& samples,
                          double seconds) {
  Utilisation result;
  if (!config.cluster.peak_tflops || seconds <= 0.0) return result;
  const double device = *config.cluster.peak_tflops * 1e12 * seconds;
  double total = 0.0;
  for (const auto& [name, flops] : FlopsOf(config, samples)) {
    total += flops;
    const double devices = DevicesOf(config, RanksOfPart(config, name));
    result.parts.push_back({name, flops / (device * devices)});
  }
  result.mfu = total / (device * DevicesOf(config, config.cluster.ranks));
  return result;
}

std::string UtilisationText(const Config& config) {
  if (!config.cluster.peak_tflops) {
    return "no MFU in TensorBoard: cluster.peak_tflops is not stated";
  }
  const bool gpus = config.cluster.backend == Backend::kCuda;
  const std::string device = gpus ? "GPU" : "rank";
  return "MFU = operations of the model / (seconds * peak * " + device + "s), " +
         Formatted("%g TFLOP/s per ", *config.cluster.peak_tflops) + device +
         Formatted(" on %g ", DevicesOf(config, config.cluster.ranks)) + device + "s";
}

}  // namespace troupe
