#include "modules/torch/reference_parameters.hpp"

#include <ATen/core/grad_mode.h>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "modules/initial_values.hpp"

namespace troupe::reference {
namespace {

using at::Tensor;

/// Adds the parameters of one module or projector.
struct Maker {
  std::uint64_t seed;
  Precision precision;
  bool frozen;
  OptimizerOverride rates;
  Parameters& parameters;

  /// `kept_exact`: a run in bfloat16 computes with the value as it is kept, in float32.
  void Add(const std::string& name, const Tensor& value, bool kept_exact = false) const {
    const at::ScalarType dtype = TypeOf(precision);
    Parameter& parameter = parameters[name];
    parameter.rounded = precision == Precision::kBFloat16 && !kept_exact;
    parameter.kept = value.to(dtype);
    parameter.value = parameter.rounded ? RoundedTo(precision, parameter.kept) : parameter.kept;
    parameter.value.requires_grad_(!frozen);
    parameter.rates = rates;
    if (frozen) return;
    for (Tensor* zero : {&parameter.gradient, &parameter.first_moment, &parameter.second_moment}) {
      *zero = at::zeros_like(value, value.options().dtype(dtype));
    }
  }

  void Normal(const std::string& name, at::IntArrayRef shape, double std) const {
    Tensor value = at::empty(shape, at::kDouble);
    const std::uint64_t key = ParameterKey(seed, name);
    double* elements = value.data_ptr<double>();
    for (std::int64_t i = 0; i < value.numel(); ++i) {
      elements[i] = static_cast<double>(NormalAt(key, static_cast<std::uint64_t>(i))) * std;
    }
    Add(name, value);
  }

  void Norm(const std::string& name, std::int64_t hidden, bool bias) const {
    Add(name + ".weight", at::ones({hidden}, at::kDouble), /*kept_exact=*/!bias);
    if (bias) Add(name + ".bias", at::zeros({hidden}, at::kDouble));
  }

  /// `branches`: the residual branches whose sum the output ends in, 1 for none.
  void Linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias,
              std::int64_t branches = 1) const {
    const double fan = static_cast<double>(in) * static_cast<double>(branches);
    Normal(name + ".weight", {out, in}, 1.0 / std::sqrt(fan));
    if (bias) Add(name + ".bias", at::zeros({out}, at::kDouble));
  }
};

double EmbeddingStd(std::int64_t hidden) { return 1.0 / std::sqrt(static_cast<double>(hidden)); }

void MakeVit(const std::string& name, const VitConfig& vit, const Maker& make) {
  const std::int64_t h = vit.hidden;
  const std::int64_t p = vit.patch_size;
  const std::string embeddings = name + ".embeddings";
  make.Normal(embeddings + ".class_embedding", {h}, EmbeddingStd(h));
  make.Normal(embeddings + ".patch_embedding.weight", {h, 3, p, p},
              1.0 / std::sqrt(static_cast<double>(3 * p * p)));
  make.Normal(embeddings + ".position_embedding.weight", {vit.num_patches() + 1, h},
              EmbeddingStd(h));
  make.Norm(name + ".pre_layrnorm", h, true);
  for (std::int64_t i = 0; i < vit.built_layers(); ++i) {
    const std::string layer = name + ".encoder.layers." + std::to_string(i);
    make.Norm(layer + ".layer_norm1", h, true);
    for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
      make.Linear(layer + ".self_attn." + part, h, h, true);
    }
    make.Linear(layer + ".self_attn.out_proj", h, h, true, 2 * vit.layers);
    make.Norm(layer + ".layer_norm2", h, true);
    make.Linear(layer + ".mlp.fc1", vit.mlp_hidden, h, true);
    make.Linear(layer + ".mlp.fc2", h, vit.mlp_hidden, true, 2 * vit.layers);
  }
}

void MakeLlama(const std::string& name, const LlamaConfig& llama, const Maker& make) {
  const std::int64_t h = llama.hidden;
  if (h % (2 * llama.heads) != 0) {
    Refuse(name + ": expected a hidden size that is a multiple of 2 x " +
           std::to_string(llama.heads) + " heads, got " + std::to_string(h));
  }
  const std::int64_t kv = h / llama.heads * llama.kv_heads;
  make.Normal(name + ".embed_tokens.weight", {llama.vocab, h}, EmbeddingStd(h));
  for (std::int64_t i = 0; i < llama.layers; ++i) {
    const std::string layer = name + ".layers." + std::to_string(i);
    make.Norm(layer + ".input_layernorm", h, false);
    make.Linear(layer + ".self_attn.q_proj", h, h, false);
    make.Linear(layer + ".self_attn.k_proj", kv, h, false);
    make.Linear(layer + ".self_attn.v_proj", kv, h, false);
    make.Linear(layer + ".self_attn.o_proj", h, h, false, 2 * llama.layers);
    make.Norm(layer + ".post_attention_layernorm", h, false);
    make.Linear(layer + ".mlp.gate_proj", llama.mlp_hidden, h, false);
    make.Linear(layer + ".mlp.up_proj", llama.mlp_hidden, h, false);
    make.Linear(layer + ".mlp.down_proj", h, llama.mlp_hidden, false, 2 * llama.layers);
  }
  make.Norm(name + ".norm", h, false);
  if (!llama.tied_head) make.Linear(name + ".lm_head", llama.vocab, h, false);
}

const ModuleConfig& ModuleNamed(const Config& config, const std::string& name, ModuleKind kind) {
  for (const ModuleConfig& module : config.modules) {
    if (module.name == name && module.kind == kind) return module;
  }
  Refuse("edges: expected " + std::string(kind == ModuleKind::kVit ? "from a vit" : "to a llama") +
         ", got \"" + name + "\"");
}

}  // namespace

void Refuse(const std::string& text) { throw std::invalid_argument(text); }

const ModuleConfig& Source(const Config& config, const EdgeConfig& edge) {
  return ModuleNamed(config, edge.from, ModuleKind::kVit);
}

const ModuleConfig& Destination(const Config& config, const EdgeConfig& edge) {
  return ModuleNamed(config, edge.to, ModuleKind::kLlama);
}

std::string ProjectorName(const EdgeConfig& edge) { return edge.from + "_to_" + edge.to; }

at::ScalarType TypeOf(Precision precision) {
  return precision == Precision::kFloat32 ? at::kFloat : at::kDouble;
}

Tensor RoundedTo(Precision precision, const Tensor& values) {
  if (precision != Precision::kBFloat16) return values;
  // By way of float32, in which a run keeps its parameters and gets its images.
  return values.to(at::kFloat).to(at::kBFloat16).to(values.scalar_type());
}

void SetFromKept(Parameter& parameter, Precision precision) {
  const at::NoGradGuard no_graph;
  if (parameter.rounded) parameter.value.copy_(RoundedTo(precision, parameter.kept));
}

Parameters MakeParameters(const Config& config) {
  Parameters parameters;
  const auto maker = [&](bool frozen, const ModuleConfig& module) {
    return Maker{config.run.seed, config.run.precision, frozen, module.optimizer, parameters};
  };
  for (const ModuleConfig& module : config.modules) {
    const Maker make = maker(module.frozen, module);
    if (module.kind == ModuleKind::kVit) {
      MakeVit(module.name, module.vit, make);
    } else if (module.kind == ModuleKind::kLlama) {
      MakeLlama(module.name, module.llama, make);
    } else {
      Refuse(module.name + ": expected a vit or a llama, got a synthetic module");
    }
  }
  for (const EdgeConfig& edge : config.edges) {
    const ModuleConfig& from = Source(config, edge);
    const ModuleConfig& to = Destination(config, edge);
    if (!edge.through) {
      if (from.vit.hidden == to.llama.hidden) continue;
      Refuse("edge " + edge.from + " -> " + edge.to +
             ": expected equal hidden sizes without a projector, got " +
             std::to_string(from.vit.hidden) + " and " + std::to_string(to.llama.hidden));
    }
    // The optimizer's values are those of the module on whose devices the projector lives.
    const Maker make =
        maker(edge.through->frozen, edge.through->on == ProjectorEnd::kFrom ? from : to);
    const std::string name = reference::ProjectorName(edge);
    make.Linear(name + ".linear_1", edge.through->hidden, from.vit.hidden, true);
    make.Linear(name + ".linear_2", to.llama.hidden, edge.through->hidden, true);
  }
  return parameters;
}

}  // namespace troupe::reference
