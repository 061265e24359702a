#include "modules/parameters.hpp"

#include <cmath>
#include <stdexcept>
#include <utility>

#include "modules/layer_split.hpp"
#include "modules/stage_parts.hpp"

namespace troupe {
namespace {

double InverseRoot(std::int64_t n) { return 1.0 / std::sqrt(static_cast<double>(n)); }

/// Collects the parameters of one module or projector under its prefix.
class SpecList {
 public:
  SpecList(std::vector<ParameterSpec>& specs, std::string prefix, std::string module, bool frozen)
      : specs_(specs), prefix_(std::move(prefix)), module_(std::move(module)), frozen_(frozen) {}

  ParameterSpec& Add(const std::string& name, Shape shape, Cut cut = Cut::kNone) {
    ParameterSpec& spec = specs_.emplace_back();
    spec.name = prefix_ + "." + name;
    spec.shape = std::move(shape);
    spec.cut = cut;
    spec.module = module_;
    spec.frozen = frozen_;
    return spec;
  }
  ParameterSpec& AddNormal(const std::string& name, Shape shape, double std, Cut cut = Cut::kNone) {
    ParameterSpec& spec = Add(name, std::move(shape), cut);
    spec.initial = Initial::kNormal;
    spec.std = std;
    return spec;
  }
  /// A linear weight [out, in]; `scale` on top of 1 / sqrt(in).
  ParameterSpec& AddWeight(const std::string& name, std::int64_t out, std::int64_t in, Cut cut,
                           double scale = 1.0) {
    return AddNormal(name + ".weight", {out, in}, InverseRoot(in) * scale, cut);
  }
  void AddNormWeight(const std::string& name, std::int64_t hidden) {
    Add(name + ".weight", {hidden}).initial = Initial::kOnes;
  }
  void AddLayerNorm(const std::string& name, std::int64_t hidden) {
    AddNormWeight(name, hidden);
    Add(name + ".bias", {hidden});
  }

 private:
  std::vector<ParameterSpec>& specs_;
  std::string prefix_;
  std::string module_;
  bool frozen_;
};

void AddVitLayer(SpecList& list, const VitConfig& vit, const std::string& layer) {
  const std::int64_t hidden = vit.hidden;
  // The residual stream sums 2 * layers branches; their last linears share its variance.
  const double residual = InverseRoot(2 * vit.layers);
  const std::string attention = layer + ".self_attn.";
  list.AddLayerNorm(layer + ".layer_norm1", hidden);
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    list.AddWeight(attention + name, hidden, hidden, Cut::kRows);
  }
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    list.Add(attention + name + ".bias", {hidden}, Cut::kRows);
  }
  list.AddWeight(attention + "out_proj", hidden, hidden, Cut::kColumns, residual);
  list.Add(attention + "out_proj.bias", {hidden});
  list.AddLayerNorm(layer + ".layer_norm2", hidden);
  list.AddWeight(layer + ".mlp.fc1", vit.mlp_hidden, hidden, Cut::kRows);
  list.Add(layer + ".mlp.fc1.bias", {vit.mlp_hidden}, Cut::kRows);
  list.AddWeight(layer + ".mlp.fc2", hidden, vit.mlp_hidden, Cut::kColumns, residual);
  list.Add(layer + ".mlp.fc2.bias", {hidden});
}

void AddVit(std::vector<ParameterSpec>& specs, const ModuleConfig& module, int pp) {
  const VitConfig& vit = module.vit;
  const std::int64_t patch = vit.patch_size;
  SpecList list(specs, module.name, module.name, module.frozen);
  if (pp == 0) {
    const double std = InverseRoot(vit.hidden);
    list.AddNormal("embeddings.class_embedding", {vit.hidden}, std);
    list.AddNormal("embeddings.patch_embedding.weight", {vit.hidden, 3, patch, patch},
                   InverseRoot(3 * patch * patch));
    list.AddNormal("embeddings.position_embedding.weight", {vit.num_patches() + 1, vit.hidden},
                   std);
    list.AddLayerNorm("pre_layrnorm", vit.hidden);
  }
  const Interval layers = SplitLayers(module)[static_cast<std::size_t>(pp)];
  for (std::int64_t layer = layers.begin; layer < layers.end; ++layer) {
    AddVitLayer(list, vit, "encoder.layers." + std::to_string(layer));
  }
}

void AddLlamaLayer(SpecList& list, const LlamaConfig& llama, const std::string& layer) {
  const std::int64_t hidden = llama.hidden;
  const std::int64_t kv_hidden = hidden / llama.heads * llama.kv_heads;
  const double residual = InverseRoot(2 * llama.layers);
  const std::string attention = layer + ".self_attn.";
  list.AddNormWeight(layer + ".input_layernorm", hidden);
  list.AddWeight(attention + "q_proj", hidden, hidden, Cut::kRows);
  for (const char* name : {"k_proj", "v_proj"}) {
    list.AddWeight(attention + name, kv_hidden, hidden, Cut::kKeyValueRows).kv_heads =
        llama.kv_heads;
  }
  list.AddWeight(attention + "o_proj", hidden, hidden, Cut::kColumns, residual);
  list.AddNormWeight(layer + ".post_attention_layernorm", hidden);
  list.AddWeight(layer + ".mlp.gate_proj", llama.mlp_hidden, hidden, Cut::kRows);
  list.AddWeight(layer + ".mlp.up_proj", llama.mlp_hidden, hidden, Cut::kRows);
  list.AddWeight(layer + ".mlp.down_proj", hidden, llama.mlp_hidden, Cut::kColumns, residual);
}

void AddEmbedding(SpecList& list, const ModuleConfig& module, int pp) {
  const LlamaConfig& llama = module.llama;
  ParameterSpec& spec = list.AddNormal("embed_tokens.weight", {llama.vocab, llama.hidden},
                                       InverseRoot(llama.hidden), Cut::kRows);
  spec.tied = module.head_tied_across_stages();
  spec.tied_copy = spec.tied && pp > 0;
}

void AddLlama(std::vector<ParameterSpec>& specs, const ModuleConfig& module, int pp) {
  const LlamaConfig& llama = module.llama;
  SpecList list(specs, module.name, module.name, module.frozen);
  if (pp == 0) AddEmbedding(list, module, pp);
  const Interval layers = SplitLayers(module)[static_cast<std::size_t>(pp)];
  for (std::int64_t layer = layers.begin; layer < layers.end; ++layer) {
    AddLlamaLayer(list, llama, "layers." + std::to_string(layer));
  }
  if (pp + 1 < module.num_stages()) return;
  list.AddNormWeight("norm", llama.hidden);
  if (!llama.tied_head) {
    list.AddWeight("lm_head", llama.vocab, llama.hidden, Cut::kRows);
  } else if (pp > 0) {
    AddEmbedding(list, module, pp);
  }
}

void AddModule(std::vector<ParameterSpec>& specs, const ModuleConfig& module, int pp) {
  if (module.kind == ModuleKind::kVit) AddVit(specs, module, pp);
  if (module.kind == ModuleKind::kLlama) AddLlama(specs, module, pp);
}

void AddProjector(std::vector<ParameterSpec>& specs, const Config& config, const EdgeConfig& edge) {
  const ProjectorConfig& projector = *edge.through;
  const std::int64_t in = HiddenSize(FindModule(config, edge.from));
  const std::int64_t out = HiddenSize(FindModule(config, edge.to));
  SpecList list(specs, ProjectorName(edge),
                projector.on == ProjectorEnd::kFrom ? edge.from : edge.to, projector.frozen);
  list.AddWeight("linear_1", projector.hidden, in, Cut::kRows);
  list.Add("linear_1.bias", {projector.hidden}, Cut::kRows);
  list.AddWeight("linear_2", out, projector.hidden, Cut::kColumns);
  list.Add("linear_2.bias", {out});
}

template <class Accept>
std::vector<const EdgeConfig*> EdgesWhere(const Config& config, Accept accept) {
  std::vector<const EdgeConfig*> result;
  for (const EdgeConfig& edge : config.edges) {
    if (accept(edge)) result.push_back(&edge);
  }
  return result;
}

bool IsInline(const Config& config, const EdgeConfig& edge) {
  return FindModule(config, edge.from).inline_in.has_value();
}

/// Rows [begin, end) of dimension 0 that a rank holds of key/value heads, and whether it speaks for
/// them.
std::pair<Interval, bool> KeyValueRows(const ParameterSpec& spec, int tp, int tp_size) {
  const std::int64_t rows = spec.shape.at(0);
  if (spec.kv_heads % tp_size == 0) return {PartOf(rows, tp_size, tp), true};
  if (tp_size % spec.kv_heads != 0) {
    throw LayoutError(spec.name + ": " + std::to_string(spec.kv_heads) +
                      " key/value heads cannot be shared by tp " + std::to_string(tp_size));
  }
  const std::int64_t sharing = tp_size / spec.kv_heads;
  const std::int64_t head_rows = rows / spec.kv_heads;
  const std::int64_t head = tp / sharing;
  return {{head * head_rows, (head + 1) * head_rows}, tp % sharing == 0};
}

}  // namespace

ParameterSlice SliceOf(const ParameterSpec& spec, int tp, int tp_size) {
  ParameterSlice slice{std::vector<std::int64_t>(spec.shape.size(), 0), spec.shape, true};
  const auto narrow = [&slice](std::size_t dimension, const Interval& part) {
    slice.offsets.at(dimension) = part.begin;
    slice.shape.at(dimension) = part.size();
  };
  switch (spec.cut) {
    case Cut::kNone:
      slice.owner = tp == 0;
      break;
    case Cut::kRows:
      narrow(0, PartOf(spec.shape.at(0), tp_size, tp));
      break;
    case Cut::kColumns:
      narrow(1, PartOf(spec.shape.at(1), tp_size, tp));
      break;
    case Cut::kKeyValueRows: {
      const auto [rows, owner] = KeyValueRows(spec, tp, tp_size);
      narrow(0, rows);
      slice.owner = owner;
    }
  }
  return slice;
}

std::vector<ParameterSpec> StageParameters(const Config& config, const std::string& module,
                                           int pp) {
  std::vector<ParameterSpec> specs;
  for (const StagePart& part : StageParts(config, module, pp)) {
    if (part.module) {
      AddModule(specs, *part.module, part.pp);
    } else {
      AddProjector(specs, config, *part.edge);
    }
  }
  return specs;
}

std::vector<const EdgeConfig*> IncomingEdges(const Config& config, const std::string& module) {
  return EdgesWhere(
      config, [&](const EdgeConfig& edge) { return edge.to == module && !IsInline(config, edge); });
}

std::vector<const EdgeConfig*> InlineEdges(const Config& config, const std::string& module) {
  return EdgesWhere(
      config, [&](const EdgeConfig& edge) { return edge.to == module && IsInline(config, edge); });
}

std::vector<const EdgeConfig*> OutgoingEdges(const Config& config, const std::string& module) {
  return EdgesWhere(config, [&](const EdgeConfig& edge) {
    return edge.from == module && !IsInline(config, edge);
  });
}

std::string ProjectorName(const EdgeConfig& edge) { return edge.from + "_to_" + edge.to; }

const ModuleConfig& FindModule(const Config& config, const std::string& module) {
  const ModuleConfig* found = config.Find(module);
  if (!found) throw std::invalid_argument("module \"" + module + "\": not in the configuration");
  return *found;
}

}  // namespace troupe
