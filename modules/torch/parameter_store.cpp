#include "modules/torch/parameter_store.hpp"

#include <ATen/core/grad_mode.h>
#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>

#include "gpu/kernels/adamw.hpp"
#include "modules/initial_values.hpp"
#include "modules/tensor_pieces.hpp"
#include "modules/torch/tensors.hpp"
#include "plan/optimizer_settings.hpp"

namespace troupe {
namespace {

/// Learning rate and weight decay of a parameter at one step.
AdamWStep StepOf(const Config& config, const ParameterSpec& spec, const UpdateStep& step) {
  const OptimizerConfig& all = config.optimizer;
  AdamWStep result;
  result.learning_rate = SettingsOf(config, spec.part).RateAt(step.schedule);
  result.weight_decay = WeightDecayOf(config, spec);
  result.beta1 = all.beta1;
  result.beta2 = all.beta2;
  result.epsilon = all.epsilon;
  result.gradient_scale = step.clip_coefficient;
  result.step = step.step;
  return result;
}

/// Calls `work` with parts of [0, rows): on several threads where there is much to do, since each
/// value follows from its place alone, and a billion of them take a thread most of a minute.
template <class Work>
void InParts(std::int64_t rows, std::int64_t row_size, Work work) {
  constexpr std::int64_t kPerThread = std::int64_t{1} << 20;
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  const std::int64_t parts = std::clamp<std::int64_t>(rows * row_size / kPerThread, 1, cores);
  std::vector<std::jthread> threads;
  for (std::int64_t part = 1; part < parts; ++part) {
    threads.emplace_back(work, rows * part / parts, rows * (part + 1) / parts);
  }
  work(0, rows / parts);
}

/// Writes one shard's initial values of a parameter, in host memory.
void Initialise(const ParameterSpec& spec, const ParameterSlice& slice, std::uint64_t seed,
                at::Tensor values) {
  if (spec.initial != Initial::kNormal) {
    values.fill_(spec.initial == Initial::kOnes ? 1.0 : 0.0);
    return;
  }
  // Only dimensions 0 and 1 are ever cut: an element is (row, column, place within them).
  const bool matrix = spec.shape.size() > 1;
  const std::int64_t rows = slice.shape.at(0);
  const std::int64_t columns = matrix ? slice.shape[1] : 1;
  const std::int64_t whole_columns = matrix ? spec.shape[1] : 1;
  const std::int64_t first_column = matrix ? slice.offsets[1] : 0;
  const std::int64_t depth = spec.num_elements() / (spec.shape[0] * whole_columns);
  const std::uint64_t key = ParameterKey(seed, spec.name);
  AT_DISPATCH_FLOATING_TYPES(values.scalar_type(), "Initialise", [&] {
    scalar_t* const all = values.data_ptr<scalar_t>();
    InParts(rows, columns * depth, [=, &spec, &slice](std::int64_t first, std::int64_t last) {
      scalar_t* value = all + first * columns * depth;
      for (std::int64_t row = first; row < last; ++row) {
        const std::int64_t begin =
            ((slice.offsets[0] + row) * whole_columns + first_column) * depth;
        for (std::int64_t i = begin; i < begin + columns * depth; ++i) {
          *value++ = static_cast<scalar_t>(spec.std * NormalAt(key, static_cast<std::uint64_t>(i)));
        }
      }
    });
  });
}

bool SameSettings(const AdamWStep& a, const AdamWStep& b) {  // the others are the same for all
  return a.learning_rate == b.learning_rate && a.weight_decay == b.weight_decay;
}

}  // namespace

ParameterStore::ParameterStore(const std::vector<ParameterSpec>& specs, const ShardAddress& shard,
                               const Layout& layout, std::uint64_t seed, const Numerics& numerics)
    : numerics_(numerics) {
  std::int64_t num_frozen = 0;
  std::int64_t num_trained = 0;
  for (const ParameterSpec& spec : specs) {
    Entry entry{.spec = spec, .slice = SliceOf(spec, shard.tp, layout.tp)};
    entry.size = NumElements(entry.slice.shape);
    std::int64_t& total = spec.frozen ? num_frozen : num_trained;
    entry.offset = std::exchange(total, total + entry.size);
    entry.owner = entry.slice.owner && shard.dp == 0 && shard.cp == 0 && !spec.tied_copy;
    entries_.push_back(std::move(entry));
  }
  const at::Tensor trained = at::empty({num_trained}, numerics.state_type);
  const at::Tensor frozen = at::empty({num_frozen}, numerics.type);
  for (const Entry& entry : entries_) {
    if (entry.spec.from_folder) continue;
    const at::Tensor& flat = entry.spec.frozen ? frozen : trained;
    const at::Tensor values = flat.narrow(0, entry.offset, entry.size);
    const bool direct = flat.scalar_type() == numerics.state_type;
    const at::Tensor initial = direct ? values : at::empty({entry.size}, numerics.state_type);
    Initialise(entry.spec, entry.slice, seed, initial);
    if (!direct) values.copy_(initial);
  }
  values_ = trained.to(numerics.device);
  frozen_ = frozen.to(numerics.device);
  if (numerics.mixed()) rounded_ = values_.to(numerics.type);
  gradients_ = at::zeros({num_trained}, numerics.state_options());
  first_moments_ = at::zeros_like(gradients_);
  second_moments_ = at::zeros_like(gradients_);
}

const ParameterStore::Entry& ParameterStore::Find(const std::string& name) const {
  const auto found = std::ranges::find_if(
      entries_, [&name](const Entry& entry) { return entry.spec.name == name; });
  if (found == entries_.end()) throw std::logic_error("parameter " + name + ": not in this stage");
  return *found;
}

bool ParameterStore::Has(const std::string& name) const {
  return std::ranges::any_of(entries_, [&](const Entry& each) { return each.spec.name == name; });
}

at::Tensor ParameterStore::Leaf(const std::vector<std::string>& names) const {
  if (Find(names.front()).spec.frozen) return LeafOver(frozen_, names);
  return LeafOver(numerics_.mixed() ? rounded_ : values_, names);
}

at::Tensor ParameterStore::StateLeaf(const std::string& name) const {
  return LeafOver(Find(name).spec.frozen ? frozen_ : values_, std::vector{name});
}

at::Tensor ParameterStore::LeafOver(const at::Tensor& values,
                                    const std::vector<std::string>& names) const {
  const Entry& first = Find(names.front());
  std::int64_t size = 0;
  std::int64_t rows = 0;
  for (const std::string& name : names) {
    const Entry& entry = Find(name);
    if (entry.offset != first.offset + size || entry.spec.frozen != first.spec.frozen) {
      throw std::logic_error("parameter " + name + ": not the neighbour of " + names.front());
    }
    size += entry.size;
    rows += entry.slice.shape.at(0);
  }
  const auto view = [&](const at::Tensor& flat) {
    const at::Tensor part = flat.narrow(0, first.offset, size);
    if (first.slice.shape.size() == 1) return part;
    const std::int64_t row_size = first.size / std::max<std::int64_t>(first.slice.shape.at(0), 1);
    return part.view({rows, row_size});
  };
  at::Tensor leaf = view(values).detach();
  if (!first.spec.frozen) {
    leaf.requires_grad_(true);
    leaf.mutable_grad() = view(gradients_);
  }
  return leaf;
}

void ParameterStore::SumOver(Communicator& group, bool (*concerns)(const ParameterSpec&)) {
  if (group.size() == 1) return;
  std::vector<at::Tensor> parts;
  for (const Entry& entry : entries_) {
    if (entry.spec.frozen || !concerns(entry.spec)) continue;
    parts.push_back(gradients_.narrow(0, entry.offset, entry.size));
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

ReducedGradients ParameterStore::ReduceGradients(const ShardGroups& groups) {
  if (groups.data->size() > 1 && gradients_.numel() > 0) {
    groups.data->AllReduce(gradients_.data_ptr(), gradients_.numel(),
                           DTypeOf(gradients_.scalar_type()), ReduceOp::kSum);
  }
  SumOver(*groups.key_value,
          [](const ParameterSpec& spec) { return spec.cut == Cut::kKeyValueRows; });
  SumOver(*groups.summed, [](const ParameterSpec& spec) { return spec.cut == Cut::kSummed; });
  SumOver(*groups.tied, [](const ParameterSpec& spec) { return spec.tied; });
  std::vector<PartGradient> owned;
  for (const Entry& entry : entries_) {
    if (entry.spec.frozen || !entry.owner) continue;
    owned.push_back({entry.spec.part, gradients_.narrow(0, entry.offset, entry.size)});
  }
  return SumOfSquares(owned);
}

FlatRun ParameterStore::RunAt(const Entry& first, std::int64_t count) const {
  const auto part = [&](const at::Tensor& flat) { return flat.narrow(0, first.offset, count); };
  return {.gradients = part(gradients_),
          .values = part(values_),
          .first_moments = part(first_moments_),
          .second_moments = part(second_moments_),
          .rounded = numerics_.mixed() ? part(rounded_) : at::Tensor()};
}

void ParameterStore::Update(const Config& config, const UpdateStep& step) {
  const at::NoGradGuard no_graph;
  // Neighbours with the same settings make one run: on a device each costs the start of a kernel.
  for (auto first = entries_.begin(); first != entries_.end();) {
    if (first->spec.frozen) {
      ++first;
      continue;
    }
    const AdamWStep settings = StepOf(config, first->spec, step);
    std::int64_t count = 0;
    auto next = first;
    while (next != entries_.end() && !next->spec.frozen &&
           SameSettings(settings, StepOf(config, next->spec, step))) {
      count += next++->size;
    }
    StepAdamW(settings, RunAt(*first, count), numerics_.portable);
    first = next;
  }
  gradients_.zero_();
}

const at::Tensor& ParameterStore::FlatOf(TensorKind kind) const {
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

std::vector<TensorPiece> ParameterStore::PiecesOf(const at::Tensor& trained,
                                                  const at::Tensor& frozen, TensorKind kind) const {
  std::vector<TensorPiece> pieces;
  for (const Entry& entry : entries_) {
    const bool is_frozen = entry.spec.frozen;
    if (is_frozen && kind != TensorKind::kParameter) continue;
    const at::Tensor part = (is_frozen ? frozen : trained).narrow(0, entry.offset, entry.size);
    pieces.push_back({.name = entry.spec.name,
                      .global_shape = entry.spec.shape,
                      .offsets = entry.slice.offsets,
                      .value = AsBuffer(part.view(entry.slice.shape)),
                      .owner = entry.owner,
                      .in_folder = is_frozen && entry.spec.from_folder});
  }
  return pieces;
}

std::vector<TensorPiece> ParameterStore::Pieces(TensorKind kind) const {
  const at::Tensor frozen = kind == TensorKind::kParameter ? frozen_.to(at::kCPU) : frozen_;
  return PiecesOf(FlatOf(kind).to(at::kCPU), frozen, kind);
}

void ParameterStore::SetPieces(const std::string& who, TensorKind kind,
                               const std::vector<TensorPiece>& pieces) {
  const at::NoGradGuard no_graph;
  at::Tensor live = FlatOf(kind);
  const at::Tensor host = live.to(at::kCPU);  // the same tensor where it is the host's
  const at::Tensor frozen = frozen_.to(at::kCPU);
  OverwritePieces(who, PiecesOf(host, frozen, kind), pieces);
  if (!live.device().is_cpu()) {
    live.copy_(host);
    frozen_.copy_(frozen);
  }
  if (numerics_.mixed() && kind == TensorKind::kParameter) rounded_.copy_(values_);
}

std::vector<FlatState> ParameterStore::Flats() const {
  // Masters are for the update, their rounded copies for what computes: all of an encoder, which is
  // what may leave. The norms of a language model read the masters, too.
  const bool mixed = numerics_.mixed();
  std::vector<FlatState> flats = {{frozen_, StateUse::kForward},
                                  {values_, mixed ? StateUse::kUpdate : StateUse::kForward},
                                  {gradients_, StateUse::kBackward},
                                  {first_moments_, StateUse::kUpdate},
                                  {second_moments_, StateUse::kUpdate}};
  if (mixed) flats.push_back({rounded_, StateUse::kForward});
  return flats;
}

std::size_t ParameterStore::num_bytes() const {
  std::size_t bytes = 0;
  for (const FlatState& flat : Flats()) bytes += flat.tensor.nbytes();
  return bytes;
}

}  // namespace troupe
