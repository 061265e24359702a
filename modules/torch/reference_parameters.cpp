#include "modules/torch/reference_parameters.hpp"

#include <ATen/core/grad_mode.h>
#include <cmath>
#include <stdexcept>

#include "modules/initial_values.hpp"
#include "modules/torch/torch_kind.hpp"

namespace troupe::reference {

using at::Tensor;

void Refuse(const std::string& text) { throw std::invalid_argument(text); }

void Maker::Add(const std::string& name, Traits traits, const Tensor& value,
                bool kept_exact) const {
  const at::ScalarType dtype = TypeOf(precision);
  Parameter& parameter = parameters[name];
  parameter.rounded = precision == Precision::kBFloat16 && !kept_exact;
  parameter.kept = value.to(dtype);
  if (frozen) parameter.kept = RoundedTo(precision, parameter.kept);
  parameter.value = parameter.rounded ? RoundedTo(precision, parameter.kept) : parameter.kept;
  parameter.value.requires_grad_(!frozen);
  parameter.rates = rates;
  parameter.traits = traits;
  if (frozen) return;
  for (Tensor* zero : {&parameter.gradient, &parameter.first_moment, &parameter.second_moment}) {
    *zero = at::zeros_like(value, value.options().dtype(dtype));
  }
}

void Maker::Normal(const std::string& name, at::IntArrayRef shape, double std, Traits traits,
                   bool kept_exact) const {
  Tensor value = at::empty(shape, at::kDouble);
  const std::uint64_t key = ParameterKey(seed, name);
  double* elements = value.data_ptr<double>();
  for (std::int64_t i = 0; i < value.numel(); ++i) {
    elements[i] = static_cast<double>(NormalAt(key, static_cast<std::uint64_t>(i))) * std;
  }
  Add(name, traits, value, kept_exact);
}

void Maker::Exact(const std::string& name, at::IntArrayRef shape) const {
  Normal(name, shape, 1.0 / std::sqrt(static_cast<double>(shape.back())), {}, /*kept_exact=*/true);
}

void Maker::Embedding(const std::string& name, at::IntArrayRef shape, Traits traits) const {
  Normal(name, shape, 1.0 / std::sqrt(static_cast<double>(shape.back())), traits);
}

void Maker::Norm(const std::string& name, std::int64_t hidden, bool bias) const {
  Add(name + ".weight", {Trait::kNorm}, at::ones({hidden}, at::kDouble), /*kept_exact=*/!bias);
  if (bias) Add(name + ".bias", {Trait::kNorm, Trait::kBias}, at::zeros({hidden}, at::kDouble));
}

void Maker::Linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias,
                   std::int64_t branches) const {
  const double fan = static_cast<double>(in) * static_cast<double>(branches);
  Normal(name + ".weight", {out, in}, 1.0 / std::sqrt(fan));
  if (bias) Add(name + ".bias", {Trait::kBias}, at::zeros({out}, at::kDouble));
  if (lora) Adapter(name, out, in);
}

void Maker::Adapter(const std::string& name, std::int64_t out, std::int64_t in) const {
  static const std::map<std::string, LinearRole> kRoles = {
      {"q_proj", LinearRole::kQuery},    {"k_proj", LinearRole::kKey},
      {"v_proj", LinearRole::kValue},    {"o_proj", LinearRole::kOutput},
      {"out_proj", LinearRole::kOutput}, {"gate_proj", LinearRole::kGate},
      {"up_proj", LinearRole::kUp},      {"down_proj", LinearRole::kDown},
      {"fc1", LinearRole::kFc1},         {"fc2", LinearRole::kFc2}};
  const auto role = kRoles.find(name.substr(name.rfind('.') + 1));
  if (role == kRoles.end() || !lora->linears.Has(role->second)) return;
  const Maker trained{seed, precision, /*frozen=*/false, rates, parameters, {}};
  trained.Normal(name + ".lora_A.weight", {lora->rank, in},
                 1.0 / std::sqrt(3.0 * static_cast<double>(in)));
  trained.Add(name + ".lora_B.weight", {}, at::zeros({out, lora->rank}, at::kDouble));
  parameters[name + ".lora_A.weight"].scale = lora->strength() / static_cast<double>(lora->rank);
}

void Maker::EncoderLayers(const ModuleConfig& module) const {
  const auto& sizes = module.As<PatchEncoder>();
  const std::int64_t h = sizes.hidden;
  for (std::int64_t i = 0; i < sizes.built_layers(); ++i) {
    const std::string layer = module.name + ".encoder.layers." + std::to_string(i);
    Norm(layer + ".layer_norm1", h, true);
    for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
      Linear(layer + ".self_attn." + part, h, h, true);
    }
    Linear(layer + ".self_attn.out_proj", h, h, true, 2 * sizes.layers);
    Norm(layer + ".layer_norm2", h, true);
    Linear(layer + ".mlp.fc1", sizes.mlp_hidden, h, true);
    Linear(layer + ".mlp.fc2", h, sizes.mlp_hidden, true, 2 * sizes.layers);
  }
  if (sizes.final_norm) Norm(module.name + ".post_layernorm", h, true);
}

const ModuleConfig& Source(const Config& config, const EdgeConfig& edge) {
  const ModuleConfig* const module = config.Find(edge.from);
  if (module && TorchKindOf(*module).reference.encode) return *module;
  Refuse("edges: expected from an encoder, got \"" + edge.from + "\"");
}

const ModuleConfig& Destination(const Config& config, const EdgeConfig& edge) {
  const ModuleConfig* const module = config.Find(edge.to);
  if (module && TorchKindOf(*module).reference.logits) return *module;
  Refuse("edges: expected to a language model, got \"" + edge.to + "\"");
}

std::string ProjectorName(const EdgeConfig& edge) { return edge.from + "_to_" + edge.to; }

at::ScalarType TypeOf(Precision precision) {
  return precision == Precision::kFloat32 ? at::kFloat : at::kDouble;
}

Tensor RoundedTo(Precision precision, const Tensor& values) {
  if (precision != Precision::kBFloat16) return values;
  // By way of float32, in which a run keeps its parameters and gets its items.
  return values.to(at::kFloat).to(at::kBFloat16).to(values.scalar_type());
}

void SetFromKept(Parameter& parameter, Precision precision) {
  const at::NoGradGuard no_graph;
  const bool frozen = !parameter.gradient.defined();
  if (frozen) parameter.kept.copy_(RoundedTo(precision, parameter.kept));
  if (parameter.rounded) parameter.value.copy_(RoundedTo(precision, parameter.kept));
}

Parameters MakeParameters(const Config& config) {
  Parameters parameters;
  const auto maker = [&](bool frozen, const OptimizerOverride& rates) {
    return Maker{config.run.seed, config.run.precision, frozen, rates, parameters, {}};
  };
  for (const ModuleConfig& module : config.modules) {
    Maker make = maker(module.frozen || module.lora, module.optimizer);
    make.lora = module.lora;
    TorchKindOf(module).reference.add_parameters(module, make);
  }
  for (const EdgeConfig& edge : config.edges) {
    const ModuleConfig& from = Source(config, edge);
    const ModuleConfig& to = Destination(config, edge);
    const std::int64_t in = from.model->row_width();
    const std::int64_t out = to.model->row_width();
    if (!edge.through) {
      if (in == out) continue;
      Refuse("edge " + edge.from + " -> " + edge.to +
             ": expected equal hidden sizes without a projector, got " + std::to_string(in) +
             " and " + std::to_string(out));
    }
    // A projector without values of its own has those of the module on whose devices it lives.
    const ModuleConfig& host = edge.through->on == ProjectorEnd::kFrom ? from : to;
    OptimizerOverride rates = edge.through->optimizer;
    if (!rates.learning_rate) rates.learning_rate = host.optimizer.learning_rate;
    if (!rates.min_learning_rate) rates.min_learning_rate = host.optimizer.min_learning_rate;
    if (!rates.weight_decay) rates.weight_decay = host.optimizer.weight_decay;
    const Maker make = maker(edge.through->frozen, rates);
    const std::string name = reference::ProjectorName(edge);
    if (from.model->tile_side() > 0) {
      make.Normal(name + ".image_newline", {out}, 1.0 / std::sqrt(static_cast<double>(out)));
    }
    if (edge.through->kind == ProjectorKind::kLinear) {
      make.Linear(name + ".linear", out, in, true);
      continue;
    }
    const bool norm = edge.through->kind == ProjectorKind::kPixelShuffle;
    if (norm) make.Norm(name + ".layer_norm", in, /*bias=*/true);
    make.Linear(name + ".linear_1", edge.through->hidden, in, true);
    make.Linear(name + ".linear_2", out, edge.through->hidden, true);
  }
  return parameters;
}

}  // namespace troupe::reference
