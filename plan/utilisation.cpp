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

/// The module on whose ranks a module or projector runs.
const ModuleConfig& HostOf(const Config& config, const std::string& part) {
  const auto edge = std::ranges::find_if(config.edges, [&part](const EdgeConfig& each) {
    return each.through && ProjectorName(each) == part;
  });
  const bool projects = edge != config.edges.end();
  const std::string& name = !projects                                  ? part
                            : edge->through->on == ProjectorEnd::kFrom ? edge->from
                                                                       : edge->to;
  const ModuleConfig& module = FindModule(config, name);
  return module.inline_in ? FindModule(config, *module.inline_in) : module;
}

}  // namespace

FlopsByPart FlopsOf(const Config& config, const std::vector<StepShape>& samples) {
  FlopsByPart flops;
  for (const StepShape& shape : ByLength(samples)) {
    for (const PartFlops& part : StepFlops(config, shape)) flops[part.name] += part.flops.total();
  }
  return flops;
}

Utilisation UtilisationOf(const Config& config, const FlopsByPart& flops, double seconds,
                          const PeakOf& peak_of) {
  Utilisation result;
  double total = 0.0;
  for (const auto& [name, operations] : flops) {
    total += operations;
    const ModuleConfig& host = HostOf(config, name);
    const double devices = DevicesOf(config, std::ssize(host.ranks));
    result.parts.push_back({name, operations / (peak_of(host) * devices * seconds)});
  }
  std::map<int, double> peaks;  // by rank: modules may share some
  for (const ModuleConfig& module : config.modules) {
    for (const int rank : module.ranks) peaks[rank] = peak_of(module);
  }
  double peak = 0.0;
  for (const auto& [rank, of_rank] : peaks) peak += of_rank;
  const double devices_per_rank = DevicesOf(config, 1);
  result.mfu = total / (devices_per_rank * peak * seconds);
  return result;
}

Utilisation UtilisationOf(const Config& config, const std::vector<StepShape>& samples,
                          double seconds) {
  if (!config.cluster.peak_tflops || seconds <= 0.0) return {};
  const double peak = *config.cluster.peak_tflops * 1e12;
  return UtilisationOf(config, FlopsOf(config, samples), seconds,
                       [peak](const ModuleConfig& /*module*/) { return peak; });
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
