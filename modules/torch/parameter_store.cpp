#include "modules/torch/parameter_store.hpp"

#include <ATen/core/grad_mode.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <utility>

#include "gpu/kernels/adamw.hpp"
#include "layout/boxes.hpp"
#include "modules/initial_values.hpp"
#include "modules/tensor_pieces.hpp"
#include "modules/torch/copy_lane.hpp"
#include "modules/torch/flat_optimizer.hpp"
#include "modules/torch/planted.hpp"
#include "modules/torch/tensors.hpp"

namespace troupe {
namespace {

/// A buffer that keeps `owner` alive, if there is one.
Buffer KeptBy(const std::shared_ptr<void>& owner, const at::Tensor& tensor) {
  Buffer buffer = AsBuffer(tensor);
  if (!owner) return buffer;
  auto both = std::make_shared<std::pair<Buffer, std::shared_ptr<void>>>(buffer, owner);
  return Buffer::Wrap(std::move(both), buffer.data(), buffer.shape(), buffer.dtype(),
                      buffer.device());
}

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
void SetInitial(const ParameterSpec& spec, const ParameterSlice& slice, std::uint64_t seed,
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
  AT_DISPATCH_FLOATING_TYPES(values.scalar_type(), "SetInitial", [&] {
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

/// Whether members of `group` have gradients that add up to those of `spec`.
struct HolderRule {
  Communicator* group;
  bool (*concerns)(const ParameterSpec&);

  bool Applies(const ParameterSpec& spec) const {
    return group != nullptr && group->size() > 1 && !spec.frozen && concerns(spec);
  }
};

/// The groups of holders of the same parameter on other ranks of a replica.
std::array<HolderRule, 3> HolderRules(const ShardGroups& groups) {
  return {HolderRule{groups.key_value.get(),
                     [](const ParameterSpec& spec) { return spec.cut == Cut::kKeyValueRows; }},
          HolderRule{groups.summed.get(),
                     [](const ParameterSpec& spec) { return spec.cut == Cut::kSummed; }},
          HolderRule{groups.tied.get(), [](const ParameterSpec& spec) { return spec.tied; }}};
}

}  // namespace

ParameterStore::ParameterStore(FlatLayout layout, std::uint64_t seed, const Numerics& numerics,
                               ShardGroups groups)
    : numerics_(numerics), layout_(std::move(layout)), groups_(std::move(groups)) {
  for (const FlatParameter& parameter : layout_.parameters()) {
    numbers_.emplace(parameter.spec.name, numbers_.size());
  }
  Initialise(seed);
  gradients_ = at::zeros({layout_.num_trained()}, numerics.state_options());
  first_moments_ = at::zeros({layout_.num_own()}, numerics.state_options());
  second_moments_ = at::zeros_like(first_moments_);
  MakeExchange();
}

void ParameterStore::Initialise(std::uint64_t seed) {
  const std::int64_t num_rounded =
      numerics_.mixed() ? layout_.num_trained() - layout_.num_unrounded() : 0;
  frozen_ = at::empty({layout_.num_frozen()}, numerics_.type);
  values_ = at::zeros({layout_.num_trained() - num_rounded}, numerics_.state_type);
  if (numerics_.mixed()) {
    rounded_ = at::zeros({num_rounded}, numerics_.type);
    masters_ = at::zeros({layout_.num_own() - layout_.num_own_unrounded()}, numerics_.state_type);
  }
  for (const FlatParameter& parameter : layout_.parameters()) {
    const ParameterSpec& spec = parameter.spec;
    if (spec.from_folder) continue;
    at::Tensor read = spec.frozen ? frozen_.narrow(0, parameter.offset, parameter.size)
                                  : ReadPart(BucketOf(parameter), parameter.interval());
    const bool direct = read.scalar_type() == numerics_.state_type;
    const at::Tensor initial = direct ? read : at::empty({parameter.size}, numerics_.state_type);
    SetInitial(spec, parameter.slice, seed, initial);
    if (direct) continue;
    read.copy_(initial);
    if (spec.frozen) continue;
    const Interval own = layout_.OwnOf(parameter);
    if (own.empty()) continue;
    OwnPart(masters_, BucketOf(parameter), own)
        .copy_(initial.narrow(0, own.begin - parameter.offset, own.size()));
  }
  for (at::Tensor* flat : {&frozen_, &values_, &rounded_, &masters_}) {
    if (flat->defined()) *flat = flat->to(numerics_.device);
  }
}

void ParameterStore::MakeExchange() {
  std::vector<BucketTensors> tensors;
  for (const FlatBucket& bucket : layout_.buckets()) {
    tensors.push_back(
        {gradients_.narrow(0, bucket.all.begin, bucket.all.size()), ReadPart(bucket, bucket.all)});
  }
  std::vector<bool> late(tensors.size(), false);
  for (const HolderRule& rule : HolderRules(groups_)) {
    for (const FlatParameter& parameter : layout_.parameters()) {
      if (rule.Applies(parameter.spec)) late[parameter.bucket] = true;
    }
  }
  exchange_ = std::make_unique<BucketExchange>(
      layout_, std::move(tensors), std::move(groups_.others), std::move(groups_.experts), late);
}

const FlatParameter& ParameterStore::Find(const std::string& name) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) throw std::logic_error("parameter " + name + ": not on this rank");
  return layout_.parameters()[found->second];
}

at::Tensor ParameterStore::ReadPart(const FlatBucket& bucket, const Interval& interval) const {
  if (IsRounded(bucket)) return rounded_.narrow(0, interval.begin, interval.size());
  // Those that are read in the type of the state are the last, if not all.
  const std::int64_t first = layout_.num_trained() - values_.numel();
  return values_.narrow(0, interval.begin - first, interval.size());
}

at::Tensor ParameterStore::OwnPart(const at::Tensor& flat, const FlatBucket& bucket,
                                   const Interval& interval) {
  return flat.narrow(0, bucket.own_offset + interval.begin - bucket.own.begin, interval.size());
}

at::Tensor ParameterStore::Leaf(const std::vector<std::string>& names) const {
  const FlatParameter& first = Find(names.front());
  Interval all{first.offset, first.offset};
  std::int64_t rows = 0;
  for (const std::string& name : names) {
    const FlatParameter& parameter = Find(name);
    if (parameter.offset != all.end || parameter.spec.frozen != first.spec.frozen) {
      throw std::logic_error("parameter " + name + ": not the neighbour of " + names.front());
    }
    all.end += parameter.size;
    rows += parameter.slice.shape.at(0);
  }
  const auto stacked = [&](const at::Tensor& flat) {
    if (first.slice.shape.size() == 1) return flat;
    const std::int64_t row_size = first.size / std::max<std::int64_t>(first.slice.shape.at(0), 1);
    return flat.view({rows, row_size});
  };
  if (first.spec.frozen) return stacked(frozen_.narrow(0, all.begin, all.size())).detach();
  at::Tensor leaf = stacked(ReadPart(BucketOf(first), all)).detach();
  leaf.requires_grad_(true);
  leaf.mutable_grad() = stacked(gradients_.narrow(0, all.begin, all.size()));
  return leaf;
}

void ParameterStore::SumOverHolders() {
  for (const HolderRule& rule : HolderRules(groups_)) {
    std::vector<at::Tensor> parts;
    for (const FlatParameter& parameter : layout_.parameters()) {
      if (!rule.Applies(parameter.spec)) continue;
      parts.push_back(gradients_.narrow(0, parameter.offset, parameter.size));
    }
    if (parts.empty()) continue;
    const at::Tensor packed = at::cat(parts);
    rule.group->AllReduce(packed.data_ptr(), packed.numel(), DTypeOf(packed.scalar_type()),
                          ReduceOp::kSum);
    std::int64_t offset = 0;
    for (at::Tensor& part : parts) {
      part.copy_(packed.narrow(0, offset, part.numel()));
      offset += part.numel();
    }
  }
}

ReducedGradients ParameterStore::ReduceGradients() {
  SumOverHolders();
  exchange_->ReduceRest();
  std::vector<PartGradient> owned;
  for (const FlatParameter& parameter : layout_.parameters()) {
    if (parameter.spec.frozen || !layout_.ReportsOwn(parameter)) continue;
    const Interval own = layout_.OwnOf(parameter);
    owned.push_back({parameter.spec.part, gradients_.narrow(0, own.begin, own.size())});
  }
  return SumOfSquares(owned);
}

void ParameterStore::UpdateRun(const AdamWStep& step, const FlatBucket& bucket,
                               const Interval& run) {
  const Interval own = Intersect(run, bucket.own);
  if (own.empty()) return;
  const bool is_rounded = IsRounded(bucket);
  const FlatRun flat{.gradients = gradients_.narrow(0, own.begin, own.size()),
                     .values = is_rounded ? OwnPart(masters_, bucket, own) : ReadPart(bucket, own),
                     .first_moments = OwnPart(first_moments_, bucket, own),
                     .second_moments = OwnPart(second_moments_, bucket, own),
                     .rounded = is_rounded ? ReadPart(bucket, own) : at::Tensor()};
  StepAdamW(step, flat, numerics_.portable);
  if (HasLibraryFault(LibraryFault::kSecondUpdate)) StepAdamW(step, flat, numerics_.portable);
}

void ParameterStore::UpdateBucket(std::size_t index, const Config& config,
                                  const UpdateStep& update) {
  const FlatBucket& bucket = layout_.buckets()[index];
  // Neighbours with the same settings make one run: on a device each costs the start of a kernel.
  Interval run{bucket.all.begin, bucket.all.begin};
  AdamWStep settings;
  for (const FlatParameter& parameter : layout_.parameters()) {
    if (parameter.spec.frozen || parameter.bucket != index) continue;
    const AdamWStep own = StepOf(config, parameter.spec, update);
    if (!run.empty() && !SameSettings(own, settings)) {
      UpdateRun(settings, bucket, run);
      run.begin = run.end;
    }
    settings = own;
    run.end = parameter.interval().end;
  }
  UpdateRun(settings, bucket, run);
}

void ParameterStore::Update(const Config& config, const UpdateStep& step) {
  const at::NoGradGuard no_graph;
  exchange_->WaitForParameters();
  for (const std::size_t bucket : exchange_->forward_order()) {
    UpdateBucket(bucket, config, step);
    exchange_->StartGather(bucket);
  }
  gradients_.zero_();
}

ParameterStore::Sources ParameterStore::LiveSources(TensorKind kind) const {
  switch (kind) {
    case TensorKind::kParameter:
      return {values_, masters_, frozen_};
    case TensorKind::kGradient:
      return {gradients_, {}, {}};
    case TensorKind::kFirstMoment:
      return {{}, first_moments_, {}};
    case TensorKind::kSecondMoment:
      return {{}, second_moments_, {}};
  }
  throw std::invalid_argument("tensor kind: unknown");
}

ParameterStore::Sources ParameterStore::HostSources(TensorKind kind) const {
  Sources sources = LiveSources(kind);
  for (at::Tensor* flat : {&sources.whole, &sources.own, &sources.frozen}) {
    if (flat->defined()) *flat = flat->to(at::kCPU);
  }
  return sources;
}

ParameterStore::Held ParameterStore::HeldOf(const FlatParameter& parameter, TensorKind kind,
                                            const Sources& from) const {
  if (parameter.spec.frozen) {
    return {from.frozen.narrow(0, parameter.offset, parameter.size), {0, parameter.size}};
  }
  const Interval own = layout_.OwnOf(parameter);
  if (own.empty()) return {{}, {0, 0}};
  const FlatBucket& bucket = BucketOf(parameter);
  const bool in_whole =
      kind == TensorKind::kGradient || (kind == TensorKind::kParameter && !IsRounded(bucket));
  // Values that are read in the type of the state are the last, if not all.
  const std::int64_t first = in_whole ? layout_.num_trained() - from.whole.numel() : 0;
  return {in_whole ? from.whole.narrow(0, own.begin - first, own.size())
                   : OwnPart(from.own, bucket, own),
          {own.begin - parameter.offset, own.end - parameter.offset}};
}

std::vector<const FlatParameter*> ParameterStore::Copied(bool frozen) const {
  std::vector<const FlatParameter*> copied;
  for (const FlatParameter& parameter : layout_.parameters()) {
    const ParameterSpec& spec = parameter.spec;
    if (spec.frozen != frozen || !Reports(stored_layout(), parameter)) continue;
    const bool is_stored = frozen ? !spec.from_folder : !layout_.OwnOf(parameter).empty();
    if (is_stored) copied.push_back(&parameter);
  }
  return copied;
}

std::vector<TensorPiece> ParameterStore::PiecesOf(TensorKind kind, const Sources& from,
                                                  bool copied_only,
                                                  const std::shared_ptr<Copies>& owner) const {
  std::vector<TensorPiece> pieces;
  for (const FlatParameter& parameter : layout_.parameters()) {
    const ParameterSpec& spec = parameter.spec;
    if (spec.frozen && kind != TensorKind::kParameter) continue;
    const bool owned = Reports(copied_only ? stored_layout() : layout_, parameter);
    if (copied_only && (!owned || (spec.frozen && spec.from_folder))) continue;
    Held held = HeldOf(parameter, kind, from);
    for (const Box& box : BoxesOf(parameter.slice.shape, held.interval)) {
      const std::int64_t size = NumElements(box.shape);
      TensorPiece piece{.name = spec.name,
                        .global_shape = spec.shape,
                        .offsets = parameter.slice.offsets,
                        .value = KeptBy(owner, held.elements.narrow(0, 0, size).view(box.shape)),
                        .owner = owned,
                        .in_folder = spec.frozen && spec.from_folder};
      for (std::size_t d = 0; d < box.offsets.size(); ++d) piece.offsets[d] += box.offsets[d];
      pieces.push_back(std::move(piece));
      held.elements = held.elements.narrow(0, size, held.elements.numel() - size);
    }
  }
  return pieces;
}

std::vector<TensorPiece> ParameterStore::Pieces(TensorKind kind) const {
  if (kind == TensorKind::kParameter) exchange_->WaitForParameters();
  return PiecesOf(kind, HostSources(kind), false);
}

ParameterStore::Sources ParameterStore::AllocateCopy(TensorKind kind, CopyLane& lane) const {
  const auto like = [&](const at::Tensor& live) {
    if (!live.defined() || live.numel() == 0) return live;
    return lane.HostBytes(static_cast<std::int64_t>(live.nbytes())).view(live.scalar_type());
  };
  const Sources live = LiveSources(kind);
  // Replicas whose state others store copy nothing.
  return Copied(false).empty() ? Sources{live.whole, live.own, {}}
                               : Sources{like(live.whole), like(live.own), {}};
}

void ParameterStore::TakeFreeCopies(CopyLane& lane) {
  copied_.reset();
  const auto free = std::ranges::find(copies_, 1, &std::shared_ptr<Copies>::use_count);
  std::atomic_thread_fence(std::memory_order_acquire);  // after the last reads of other threads
  if (free != copies_.end()) {
    copied_ = *free;
    return;
  }
  copied_ = copies_.emplace_back(std::make_shared<Copies>());
  for (const TensorKind kind : kStoredKinds) (*copied_)[kind] = AllocateCopy(kind, lane);
}

std::vector<LaneCopy> ParameterStore::CopiesOf(TensorKind kind) const {
  std::vector<LaneCopy> copies;
  const Sources live = LiveSources(kind);
  for (const FlatParameter* parameter : Copied(false)) {
    copies.push_back({HeldOf(*parameter, kind, copied_->at(kind)).elements,
                      HeldOf(*parameter, kind, live).elements});
  }
  return copies;
}

void ParameterStore::PrepareCopies(CopyLane& lane) {
  std::vector<at::Tensor> fresh;
  TakeFreeCopies(lane);
  for (const TensorKind kind : kStoredKinds) {
    for (const LaneCopy& copy : CopiesOf(kind)) fresh.push_back(copy.to);
  }
  if (!numerics_.device.is_cpu()) return;  // pinned memory is there
  lane.Queue(
      {},
      [fresh = std::move(fresh)] {
        for (const at::Tensor& memory : fresh) {
          std::memset(memory.data_ptr(), 0, memory.nbytes());
        }
      },
      [](const WorkTimes&) {});
}

void ParameterStore::CopyStored(CopyLane& lane, bool leaves, StateMovedCallback done) {
  TakeFreeCopies(lane);
  std::vector<LaneCopy> copies;
  for (const TensorKind kind : kStoredKinds) {
    std::ranges::move(CopiesOf(kind), std::back_inserter(copies));
  }
  if (!copied_frozen_.defined()) {
    const bool has_any = !Copied(true).empty();
    copied_frozen_ = !has_any ? frozen_
                     : leaves ? frozen_.clone().to(at::kCPU)
                              : frozen_.to(at::kCPU);
  }
  copied_->at(TensorKind::kParameter).frozen = copied_frozen_;
  lane.Queue(std::move(copies), {}, std::move(done));
}

std::vector<TensorPiece> ParameterStore::CopiedPieces(TensorKind kind) const {
  return PiecesOf(kind, copied_->at(kind), true, copied_);
}

void ParameterStore::SetPieces(const std::string& who, TensorKind kind,
                               const std::vector<TensorPiece>& pieces) {
  const at::NoGradGuard no_graph;
  if (kind == TensorKind::kParameter) exchange_->WaitForParameters();
  const Sources host = HostSources(kind);
  copied_frozen_.reset();
  OverwritePieces(who, PiecesOf(kind, host, false), pieces);
  const auto put = [](const at::Tensor& live, const at::Tensor& written) {
    if (live.defined() && !live.device().is_cpu()) live.copy_(written);
  };
  if (kind == TensorKind::kFirstMoment) put(first_moments_, host.own);
  if (kind == TensorKind::kSecondMoment) put(second_moments_, host.own);
  if (kind != TensorKind::kParameter) return;
  put(values_, host.whole);
  put(masters_, host.own);
  put(frozen_, host.frozen);
  for (const std::size_t b : exchange_->forward_order()) {
    const FlatBucket& bucket = layout_.buckets()[b];
    if (IsRounded(bucket)) {
      ReadPart(bucket, bucket.own).copy_(OwnPart(masters_, bucket, bucket.own));
    }
    exchange_->StartGather(b);
  }
}

std::vector<FlatState> ParameterStore::Flats() const {
  // Masters are for the update, their rounded copies for what computes.
  std::vector<FlatState> flats = {{frozen_, StateUse::kForward},
                                  {values_, StateUse::kForward},
                                  {gradients_, StateUse::kBackward},
                                  {first_moments_, StateUse::kUpdate},
                                  {second_moments_, StateUse::kUpdate}};
  if (!numerics_.mixed()) return flats;
  flats.push_back({rounded_, StateUse::kForward});
  flats.push_back({masters_, StateUse::kUpdate});
  return flats;
}

std::size_t ParameterStore::num_bytes() const {
  std::size_t bytes = 0;
  for (const FlatState& flat : Flats()) bytes += flat.tensor.nbytes();
  return bytes;
}

}  // namespace troupe
