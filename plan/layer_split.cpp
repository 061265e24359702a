#include "plan/layer_split.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "layout/at.hpp"

namespace troupe {
namespace {

/// The operations of a forward of a full sample.
double FlopsOf(const ModuleConfig& module, const StagePlace& place) {
  StepShape sample{.samples = 1};
  if (const auto text = module.model->text()) sample.tokens = sample.labels = text->context;
  sample.lengths[module.name] = module.model->most_length();
  FlopCounter count(/*trains=*/false, /*input_gradient=*/false);
  module.model->ListWork(place, sample, module.name, count);
  return count.flops().forward;
}

std::vector<std::int64_t> StatedOrBalanced(const ModuleConfig& module) {
  const auto split = module.model->split_layers();
  const std::int64_t layers = split ? split->number : module.num_stages();
  const auto& stated = module.layers_per_stage;
  if (stated.empty()) {
    const double layer = FlopsOf(module, {.layers = {0, layers}}) /
                         static_cast<double>(std::max<std::int64_t>(layers, 1));
    const double unit = std::max(layer, 1.0);
    return BalanceLayers(layers, module.num_stages(),
                         FlopsOf(module, {.layers = {}, .first = true}) / unit,
                         FlopsOf(module, {.layers = {}, .last = true}) / unit);
  }
  const std::int64_t sum = std::accumulate(stated.begin(), stated.end(), std::int64_t{0});
  if (static_cast<int>(stated.size()) != module.num_stages() || sum != layers ||
      (stated.size() > 1 && std::ranges::min(stated) < 1)) {
    throw LayoutError(module.name + ".layers_per_stage: expected " +
                      std::to_string(module.num_stages()) + " numbers of at least 1 with sum " +
                      std::to_string(layers) + ", got " + std::to_string(stated.size()) +
                      " with sum " + std::to_string(sum));
  }
  return stated;
}

}  // namespace

std::vector<std::int64_t> BalanceLayers(std::int64_t num_layers, int num_stages, double first_extra,
                                        double last_extra) {
  if (num_stages == 1) return {num_layers};
  if (num_layers < num_stages) {
    throw LayoutError("layers: expected at least one for each of " + std::to_string(num_stages) +
                      " stages, got " + std::to_string(num_layers));
  }
  std::vector<std::int64_t> sizes(At(num_stages), 1);
  // Layers are alike, so giving each to the cheapest stage minimizes both the maximum and the sum
  // of squares. Costs that differ only by rounding are equal, and then the later stage wins. The stages
  // between the first and the last one take turns, the latest first.
  constexpr double kTolerance = 1e-9;
  const std::size_t last = sizes.size() - 1;
  double first_cost = 1.0 + first_extra;
  double last_cost = 1.0 + last_extra;
  std::size_t between = last - 1;  // next to take one; 0: there is none
  for (std::int64_t layer = num_stages; layer < num_layers; ++layer) {
    std::size_t cheapest = last;
    double cost = last_cost;
    if (between > 0 && static_cast<double>(sizes[between]) < cost - kTolerance) {
      cheapest = between;
      cost = static_cast<double>(sizes[between]);
    }
    if (first_cost < cost - kTolerance) cheapest = 0;
    ++sizes[cheapest];
    if (cheapest == last) {
      last_cost += 1.0;
    } else if (cheapest == 0) {
      first_cost += 1.0;
    } else {
      between = between > 1 ? between - 1 : last - 1;
    }
  }
  return sizes;
}

std::vector<Interval> SplitLayers(const ModuleConfig& module) {
  std::vector<Interval> stages;
  std::int64_t begin = 0;
  for (const std::int64_t size : StatedOrBalanced(module)) {
    stages.push_back({begin, begin + size});
    begin += size;
  }
  return stages;
}

bool ActivationsLeave(const ModuleConfig& module, int pp, std::int64_t layer) {
  const LayerChoice& choice = module.offload_activations;
  if (!choice.automatic) return std::ranges::find(choice.layers, layer) != choice.layers.end();
  const StagePlace place = PlaceOf(module, pp);
  const bool before_loss = place.last && !module.model->emits_rows();
  return !before_loss || layer + 1 < place.layers.end;
}

StagePlace PlaceOf(const ModuleConfig& module, int pp) {
  return {SplitLayers(module).at(At(pp)), pp == 0, pp + 1 == module.num_stages()};
}

}  // namespace troupe
