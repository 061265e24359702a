#include "modules/model_flops.hpp"

#include "modules/layer_split.hpp"
#include "modules/parameters.hpp"
#include "modules/stage_parts.hpp"

namespace troupe {
namespace {

double Product(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) * static_cast<double>(b);
}

/// Adds up the products of one module or projector.
class Counter {
 public:
  explicit Counter(const StagePart& part) : trains_(part.trains), asked_(part.input_gradient) {}

  /// `rows` times a weight [out, in]. `first`: nothing of this part stands before it.
  void AddLinear(std::int64_t rows, std::int64_t out, std::int64_t in, bool first = false) {
    const double once = 2.0 * static_cast<double>(rows) * Product(out, in);
    const bool input_gradient = asked_ || (trains_ && !first);
    flops_.forward += once;
    flops_.weights += once * int{trains_};
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
  bool asked_;  ///< its input has a gradient
  PassFlops flops_;
};

std::int64_t ImagesOf(const StepShape& shape, const std::string& encoder) {
  const auto found = shape.images.find(encoder);
  return found == shape.images.end() ? 0 : found->second;
}

std::int64_t NumLayersOf(const StagePart& part) {
  return SplitLayers(*part.module)[static_cast<std::size_t>(part.pp)].size();
}

PassFlops VitFlops(const StagePart& part, std::int64_t images) {
  const VitConfig& vit = part.module->vit;
  Counter count(part);
  const std::int64_t length = vit.num_patches() + 1;
  const std::int64_t rows = images * length;
  if (part.pp == 0) {
    count.AddLinear(images * vit.num_patches(), vit.hidden, 3 * vit.patch_size * vit.patch_size,
                    /*first=*/true);
  }
  for (std::int64_t layer = 0; layer < NumLayersOf(part); ++layer) {
    count.AddLinear(rows, 4 * vit.hidden, vit.hidden);  // q, k, v, out
    count.AddLinear(rows, 2 * vit.mlp_hidden, vit.hidden);
    count.AddAttention(Product(rows, length), vit.hidden);
  }
  return count.flops();
}

PassFlops LlamaFlops(const StagePart& part, const StepShape& shape) {
  const LlamaConfig& llama = part.module->llama;
  Counter count(part);
  const std::int64_t rows = shape.samples * shape.tokens;
  const std::int64_t kv_hidden = llama.hidden / llama.heads * llama.kv_heads;
  // Every position sees itself and those before it.
  const double pairs =
      static_cast<double>(shape.samples) * Product(shape.tokens, shape.tokens + 1) / 2.0;
  for (std::int64_t layer = 0; layer < NumLayersOf(part); ++layer) {
    count.AddLinear(rows, 2 * llama.hidden + 2 * kv_hidden, llama.hidden);
    count.AddLinear(rows, 3 * llama.mlp_hidden, llama.hidden);
    count.AddAttention(pairs, llama.hidden);
  }
  if (part.pp + 1 == part.module->num_stages()) {
    count.AddLinear(shape.labels, llama.vocab, llama.hidden);
  }
  return count.flops();
}

PassFlops ProjectorFlops(const Config& config, const StagePart& part, const StepShape& shape) {
  const EdgeConfig& edge = *part.edge;
  const ModuleConfig& from = FindModule(config, edge.from);
  const std::int64_t rows = ImagesOf(shape, edge.from) * from.vit.rows_per_image();
  Counter count(part);
  count.AddLinear(rows, edge.through->hidden, HiddenSize(from), /*first=*/true);
  count.AddLinear(rows, HiddenSize(FindModule(config, edge.to)), edge.through->hidden);
  return count.flops();
}

PassFlops FlopsOf(const Config& config, const StagePart& part, const StepShape& shape) {
  if (part.edge) return ProjectorFlops(config, part, shape);
  return part.module->kind == ModuleKind::kVit ? VitFlops(part, ImagesOf(shape, part.module->name))
                                               : LlamaFlops(part, shape);
}

std::string NameOf(const StagePart& part) {
  return part.edge ? ProjectorName(*part.edge) : part.module->name;
}

}  // namespace

PassFlops& PassFlops::operator+=(const PassFlops& other) {
  forward += other.forward;
  backward += other.backward;
  weights += other.weights;
  return *this;
}

PassFlops StageFlops(const Config& config, const std::string& module, int pp,
                     const StepShape& shape) {
  PassFlops flops;
  if (FindModule(config, module).kind == ModuleKind::kSynthetic) return flops;
  for (const StagePart& part : StageParts(config, module, pp)) {
    flops += FlopsOf(config, part, shape);
  }
  return flops;
}

std::vector<PartFlops> StepFlops(const Config& config, const StepShape& shape) {
  std::map<std::string, PassFlops> by_name;
  for (const ModuleConfig& module : config.modules) {
    if (module.kind == ModuleKind::kSynthetic || module.inline_in) continue;
    for (int pp = 0; pp < module.num_stages(); ++pp) {
      for (const StagePart& part : StageParts(config, module.name, pp)) {
        by_name[NameOf(part)] += FlopsOf(config, part, shape);
      }
    }
  }
  std::vector<PartFlops> parts;
  const auto add = [&](const std::string& name) {
    if (by_name.contains(name)) parts.push_back({name, by_name.at(name)});
  };
  for (const ModuleConfig& module : config.modules) add(module.name);
  for (const EdgeConfig& edge : config.edges) add(ProjectorName(edge));
  return parts;
}

double TotalFlops(const std::vector<PartFlops>& parts) {
  double total = 0.0;
  for (const PartFlops& part : parts) total += part.flops.total();
  return total;
}

}  // namespace troupe
