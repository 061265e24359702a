#include "modules/torch/parameter_store.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "gpu/kernels/adamw.hpp"
#include "modules/initial_values.hpp"
#include "modules/torch/row_kernels.hpp"
#include "modules/torch/tensors.hpp"

namespace troupe {
namespace {

/// Learning rate and weight decay of a module's parameters at one step.
AdamWStep StepOf(const Config& config, const ParameterSpec& spec, const UpdateStep& step) {
  const OptimizerConfig& all = config.optimizer;
  const OptimizerOverride& own = FindModule(config, spec.module).optimizer;
  const double highest = own.learning_rate.value_or(all.learning_rate);
  const double lowest = own.min_learning_rate.value_or(all.min_learning_rate);
  AdamWStep result;
  result.learning_rate = lowest + step.schedule * (highest - lowest);
  // Norm weights, biases and other vectors do not decay.
  result.weight_decay = spec.shape.size() > 1 ? own.weight_decay.value_or(all.weight_decay) : 0.0;
  result.beta1 = all.beta1;
  result.beta2 = all.beta2;
  result.epsilon = all.epsilon;
  result.gradient_scale = step.clip_coefficient;
  result.step = step.step;
  return result;
}

}  // namespace

ParameterStore::ParameterStore(const std::vector<ParameterSpec>& specs, const ShardAddress& shard,
                               const Layout& layout, std::uint64_t seed, at::ScalarType type) {
  std::int64_t num_values = 0;
  std::int64_t num_gradients = 0;
  for (const ParameterSpec& spec : specs) {
    Entry entry{.spec = spec, .slice = SliceOf(spec, shard.tp, layout.tp)};
    entry.size = NumElements(entry.slice.shape);
    entry.value_offset = num_values;
    entry.gradient_offset = num_gradients;
    entry.owner = entry.slice.owner && shard.dp == 0 && shard.cp == 0 && !spec.tied_copy;
    num_values += entry.size;
    if (!spec.frozen) num_gradients += entry.size;
    entries_.push_back(std::move(entry));
  }
  values_ = at::empty({num_values}, type);
  gradients_ = at::zeros({num_gradients}, type);
  first_moments_ = at::zeros({num_gradients}, type);
  second_moments_ = at::zeros({num_gradients}, type);
  for (const Entry& entry : entries_) Initialise(entry, seed);
}

void ParameterStore::Initialise(const Entry& entry, std::uint64_t seed) {
  const ParameterSpec& spec = entry.spec;
  at::Tensor values = values_.narrow(0, entry.value_offset, entry.size);
  if (spec.initial != Initial::kNormal) {
    values.fill_(spec.initial == Initial::kOnes ? 1.0 : 0.0);
    return;
  }
  // Only dimensions 0 and 1 are ever cut: an element is (row, column, place behind them).
  const bool matrix = spec.shape.size() > 1;
  const std::int64_t rows = entry.slice.shape.at(0);
  const std::int64_t columns = matrix ? entry.slice.shape[1] : 1;
  const std::int64_t whole_columns = matrix ? spec.shape[1] : 1;
  const std::int64_t first_column = matrix ? entry.slice.offsets[1] : 0;
  const std::int64_t depth = spec.num_elements() / (spec.shape[0] * whole_columns);
  const std::uint64_t key = param_key(seed, spec.name);
  AT_DISPATCH_FLOATING_TYPES(values.scalar_type(), "Initialise", [&] {
    scalar_t* value = values.data_ptr<scalar_t>();
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t begin =
          ((entry.slice.offsets[0] + row) * whole_columns + first_column) * depth;
      for (std::int64_t i = begin; i < begin + columns * depth; ++i) {
        *value++ = static_cast<scalar_t>(spec.std * normal_at(key, static_cast<std::uint64_t>(i)));
      }
    }
  });
}

const ParameterStore::Entry& ParameterStore::Find(const std::string& name) const {
  const auto found = std::ranges::find_if(
      entries_, [&name](const Entry& entry) { return entry.spec.name == name; });
  if (found == entries_.end()) throw std::logic_error("parameter " + name + ": not in this stage");
  return *found;
}

bool ParameterStore::Contains(const std::string& name) const {
  return std::ranges::any_of(entries_,
                             [&name](const Entry& entry) { return entry.spec.name == name; });
}

at::Tensor ParameterStore::Leaf(const std::vector<std::string>& names) const {
  const Entry& first = Find(names.front());
  std::int64_t size = 0;
  std::int64_t rows = 0;
  for (const std::string& name : names) {
    const Entry& entry = Find(name);
    if (entry.value_offset != first.value_offset + size || entry.spec.frozen != first.spec.frozen) {
      throw std::logic_error("parameter " + name + ": not the neighbour of " + names.front());
    }
    size += entry.size;
    rows += entry.slice.shape.at(0);
  }
  const auto view = [&](const at::Tensor& flat, std::int64_t offset) {
    const at::Tensor part = flat.narrow(0, offset, size);
    if (first.slice.shape.size() == 1) return part;
    const std::int64_t row_size = first.size / std::max<std::int64_t>(first.slice.shape.at(0), 1);
    return part.view({rows, row_size});
  };
  at::Tensor leaf = view(values_, first.value_offset).detach();
  if (!first.spec.frozen) {
    leaf.requires_grad_(true);
    leaf.mutable_grad() = view(gradients_, first.gradient_offset);
  }
  return leaf;
}

void ParameterStore::SumOver(Communicator& group, bool (*concerns)(const ParameterSpec&)) {
  if (group.size() == 1) return;
  std::vector<at::Tensor> parts;
  for (const Entry& entry : entries_) {
    if (entry.spec.frozen || !concerns(entry.spec)) continue;
    parts.push_back(gradients_.narrow(0, entry.gradient_offset, entry.size));
  }
  if (parts.empty()) return;
  const at::Tensor packed = at::cat(parts);
  group.AllReduce(packed.data_ptr(), packed.numel(), DTypeOf(packed.scalar_type()), ReduceOp::kSum);
  std::int64_t offset = 0;
  for (at::Tensor& part : parts) {
    part.copy_(packed.narrow(0, offset, part.numel()));
    offset += part.numel();
  }
}

double ParameterStore::ReduceGradients(const ShardGroups& groups) {
  if (groups.data->size() > 1 && gradients_.numel() > 0) {
    groups.data->AllReduce(gradients_.data_ptr(), gradients_.numel(),
                           DTypeOf(gradients_.scalar_type()), ReduceOp::kSum);
  }
  SumOver(*groups.key_value,
          [](const ParameterSpec& spec) { return spec.cut == Cut::kKeyValueRows; });
  SumOver(*groups.tied, [](const ParameterSpec& spec) { return spec.tied; });
  double squares = 0.0;
  AT_DISPATCH_FLOATING_TYPES(gradients_.scalar_type(), "ReduceGradients", [&] {
    for (const Entry& entry : entries_) {
      if (entry.spec.frozen || !entry.owner) continue;
      squares += SumOfSquares(gradients_.data_ptr<scalar_t>() + entry.gradient_offset, entry.size);
    }
  });
  return squares;
}

void ParameterStore::Update(const Config& config, const UpdateStep& step) {
  AT_DISPATCH_FLOATING_TYPES(values_.scalar_type(), "Update", [&] {
    for (const Entry& entry : entries_) {
      if (entry.spec.frozen) continue;
      const std::int64_t at = entry.gradient_offset;
      ApplyAdamW(StepOf(config, entry.spec, step), entry.size, gradients_.data_ptr<scalar_t>() + at,
                 values_.data_ptr<scalar_t>() + entry.value_offset,
                 first_moments_.data_ptr<scalar_t>() + at,
                 second_moments_.data_ptr<scalar_t>() + at);
    }
  });
  gradients_.zero_();
}

at::Tensor ParameterStore::FlatOf(TensorKind kind) const {
  switch (kind) {
    case TensorKind::kParameter:
      return values_;
    case TensorKind::kGradient:
      return gradients_;
    case TensorKind::kFirstMoment:
      return first_moments_;
    case TensorKind::kSecondMoment:
      return second_moments_;
  }
  throw std::invalid_argument("tensor kind: unknown");
}

std::vector<TensorPiece> ParameterStore::Pieces(TensorKind kind) const {
  const at::Tensor flat = FlatOf(kind);
  std::vector<TensorPiece> pieces;
  for (const Entry& entry : entries_) {
    const bool parameter = kind == TensorKind::kParameter;
    if (entry.spec.frozen && !parameter) continue;
    const std::int64_t offset = parameter ? entry.value_offset : entry.gradient_offset;
    pieces.push_back({.name = entry.spec.name,
                      .global_shape = entry.spec.shape,
                      .offsets = entry.slice.offsets,
                      .value = AsBuffer(flat.narrow(0, offset, entry.size).view(entry.slice.shape)),
                      .owner = entry.owner});
  }
  return pieces;
}

std::vector<FlatState> ParameterStore::Flats() const {
  return {{values_, StateUse::kForward},
          {gradients_, StateUse::kBackward},
          {first_moments_, StateUse::kUpdate},
          {second_moments_, StateUse::kUpdate}};
}

std::size_t ParameterStore::num_bytes() const {
  return static_cast<std::size_t>(values_.numel() + 3 * gradients_.numel()) *
         static_cast<std::size_t>(values_.element_size());
}

}  // namespace troupe
