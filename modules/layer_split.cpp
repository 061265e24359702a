#include "modules/layer_split.hpp"

#include <algorithm>
#include <numeric>
#include <string>

namespace troupe {
namespace {

/// Multiplications per row of what stands before and behind the layers, relative to one layer.
struct ExtraCosts {
  double first = 0.0;
  double last = 0.0;
};

ExtraCosts VitExtras(const VitConfig& vit) {
  const auto hidden = static_cast<double>(vit.hidden);
  const double layer = 4.0 * hidden * hidden + 2.0 * hidden * static_cast<double>(vit.mlp_hidden);
  const auto patch = static_cast<double>(3 * vit.patch_size * vit.patch_size);
  return {.first = patch * hidden / layer, .last = 0.0};
}

ExtraCosts LlamaExtras(const LlamaConfig& llama) {
  const auto hidden = static_cast<double>(llama.hidden);
  const double kv_share = static_cast<double>(llama.kv_heads) / static_cast<double>(llama.heads);
  const double layer = hidden * hidden * (2.0 + 2.0 * kv_share) +
                       3.0 * hidden * static_cast<double>(llama.mlp_hidden);
  return {.first = 0.0, .last = static_cast<double>(llama.vocab) * hidden / layer};
}

std::int64_t NumLayers(const ModuleConfig& module) {
  switch (module.kind) {
    case ModuleKind::kVit:
      return module.vit.built_layers();
    case ModuleKind::kLlama:
      return module.llama.layers;
    case ModuleKind::kSynthetic:
      return module.num_stages();
  }
  return 0;
}

std::vector<std::int64_t> StatedOrBalanced(const ModuleConfig& module) {
  const std::int64_t layers = NumLayers(module);
  const auto& stated = module.layers_per_stage;
  if (stated.empty()) {
    const ExtraCosts extra = module.kind == ModuleKind::kVit     ? VitExtras(module.vit)
                             : module.kind == ModuleKind::kLlama ? LlamaExtras(module.llama)
                                                                 : ExtraCosts{};
    return BalanceLayers(layers, module.num_stages(), extra.first, extra.last);
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
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(num_stages), 1);
  std::vector<double> costs(sizes.size(), 1.0);
  costs.front() += first_extra;
  costs.back() += last_extra;
  // Layers are alike, so giving each to the cheapest stage is optimal for the maximum and for the
  // sum of squares. Costs that differ by rounding only are equal; the later stage then wins.
  constexpr double kTolerance = 1e-9;
  for (std::int64_t layer = num_stages; layer < num_layers; ++layer) {
    std::size_t cheapest = sizes.size() - 1;
    for (std::size_t stage = cheapest; stage-- > 0;) {
      if (costs[stage] < costs[cheapest] - kTolerance) cheapest = stage;
    }
    ++sizes[cheapest];
    costs[cheapest] += 1.0;
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

}  // namespace troupe
