#include "modules/model_flops.hpp"

#include <algorithm>

#include "modules/freezing.hpp"
#include "modules/parameters.hpp"

namespace troupe {
namespace {

double Product(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) * static_cast<double>(b);
}

/// Adds up the products of one module or projector.
class Counter {
 public:
  /// `trains`: its weights do. `asked`: something before it trains, so its input has a gradient.
  Counter(bool trains, bool asked) : trains_(trains), asked_(asked) {}

  /// `rows` times a weight [out, in]. `first`: nothing of this part stands before it.
  void AddLinear(std::int64_t rows, std::int64_t out, std::int64_t in, bool first = false) {
    const double once = 2.0 * static_cast<double>(rows) * Product(out, in);
    const bool input_gradient = asked_ || (trains_ && !first);
    flops_.forward += once;
    flops_.backward += once * (int{trains_} + int{input_gradient});
  }
  /// Scores and weighted sums of `pairs` of positions, all heads together `width` wide. The
  /// gradient of a product of two activations is two products.
  void AddAttention(double pairs, std::int64_t width) {
    const double once = 4.0 * pairs * static_cast<double>(width);
    flops_.forward += once;
    if (asked_ || trains_) flops_.backward += 2.0 * once;
  }

  const PassFlops& flops() const { return flops_; }

 private:
  bool trains_;
  bool asked_;
  PassFlops flops_;
};

std::int64_t ImagesOf(const StepShape& shape, const std::string& encoder) {
  const auto found = shape.images.find(encoder);
  return found == shape.images.end() ? 0 : found->second;
}

PassFlops VitFlops(const ModuleConfig& module, std::int64_t images) {
  const VitConfig& vit = module.vit;
  Counter count(!module.frozen, /*asked=*/false);
  const std::int64_t length = vit.num_patches() + 1;
  const std::int64_t rows = images * length;
  count.AddLinear(images * vit.num_patches(), vit.hidden, 3 * vit.patch_size * vit.patch_size,
                  /*first=*/true);
  for (std::int64_t layer = 0; layer < vit.built_layers(); ++layer) {
    count.AddLinear(rows, 4 * vit.hidden, vit.hidden);  // q, k, v, out
    count.AddLinear(rows, 2 * vit.mlp_hidden, vit.hidden);
    count.AddAttention(Product(rows, length), vit.hidden);
  }
  return count.flops();
}

PassFlops LlamaFlops(const Config& config, const ModuleConfig& module, const StepShape& shape) {
  const LlamaConfig& llama = module.llama;
  const bool asked = std::ranges::any_of(config.edges, [&](const EdgeConfig& edge) {
    return edge.to == module.name && EdgeCarriesGradient(config, edge);
  });
  Counter count(!module.frozen, asked);
  const std::int64_t rows = shape.samples * shape.tokens;
  const std::int64_t kv_hidden = llama.hidden / llama.heads * llama.kv_heads;
  // Every position sees itself and those before it.
  const double pairs =
      static_cast<double>(shape.samples) * Product(shape.tokens, shape.tokens + 1) / 2.0;
  for (std::int64_t layer = 0; layer < llama.layers; ++layer) {
    count.AddLinear(rows, 2 * llama.hidden + 2 * kv_hidden, llama.hidden);
    count.AddLinear(rows, 3 * llama.mlp_hidden, llama.hidden);
    count.AddAttention(pairs, llama.hidden);
  }
  count.AddLinear(shape.labels, llama.vocab, llama.hidden);
  return count.flops();
}

PassFlops ProjectorFlops(const Config& config, const EdgeConfig& edge, const StepShape& shape) {
  const ModuleConfig& from = FindModule(config, edge.from);
  const std::int64_t rows = ImagesOf(shape, edge.from) * from.vit.rows_per_image();
  Counter count(!edge.through->frozen, !from.frozen);
  count.AddLinear(rows, edge.through->hidden, HiddenSize(from), /*first=*/true);
  count.AddLinear(rows, HiddenSize(FindModule(config, edge.to)), edge.through->hidden);
  return count.flops();
}

}  // namespace

std::vector<PartFlops> StepFlops(const Config& config, const StepShape& shape) {
  std::vector<PartFlops> parts;
  for (const ModuleConfig& module : config.modules) {
    if (module.kind == ModuleKind::kVit) {
      parts.push_back({module.name, VitFlops(module, ImagesOf(shape, module.name))});
    }
    if (module.kind == ModuleKind::kLlama) {
      parts.push_back({module.name, LlamaFlops(config, module, shape)});
    }
  }
  for (const EdgeConfig& edge : config.edges) {
    if (edge.through) {
      parts.push_back({ProjectorName(edge), ProjectorFlops(config, edge, shape)});
    }
  }
  return parts;
}

double TotalFlops(const std::vector<PartFlops>& parts) {
  double total = 0.0;
  for (const PartFlops& part : parts) total += part.flops.total();
  return total;
}

}  // namespace troupe
