#include "modules/torch/activation_offload.hpp"

#include <ATen/core/grad_mode.h>
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "modules/torch/autograd.hpp"
#include "trace/clock.hpp"

namespace troupe {
namespace {

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

/// What the innermost scope of this thread, and the layer that it runs, work on.
struct Current {
  ActivationOffload* offload = nullptr;
  std::int64_t unit = 0;
  std::vector<WeakStorage>* noted = nullptr;  ///< null outside layers that leave
};
thread_local Current t_current;

constexpr std::int64_t kAlignment = 64;

std::int64_t Aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::int64_t BytesOf(const std::vector<at::Tensor>& tensors) {
  std::int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += Aligned(tensor.numel());
  return bytes;
}

/// All bytes of a storage.
at::Tensor BytesOf(const c10::Storage& storage) {
  const auto bytes = static_cast<std::int64_t>(storage.nbytes());
  return at::empty({0}, at::TensorOptions(at::kByte).device(storage.device()))
      .set_(storage, 0, {bytes}, {1});
}

/// Those that still exist, each once. Memory that the library did not allocate, such as rows that
/// have arrived, stays: others may hold it.
std::vector<c10::Storage> Living(const std::vector<WeakStorage>& noted) {
  std::vector<c10::Storage> living;
  for (const WeakStorage& weak : noted) {
    c10::Storage storage(weak.lock());
    if (!storage || storage.nbytes() == 0 || storage.allocator() == nullptr) continue;
    const auto same = [&storage](const c10::Storage& other) {
      return other.unsafeGetStorageImpl() == storage.unsafeGetStorageImpl();
    };
    if (std::ranges::none_of(living, same)) living.push_back(std::move(storage));
  }
  return living;
}

/// The copies between the tensors of a group and the parts of its side.
template <class Add>
void ForEachPart(const std::vector<at::Tensor>& here, const at::Tensor& side, Add add) {
  std::int64_t begin = 0;
  for (const at::Tensor& tensor : here) {
    add(tensor, side.narrow(0, begin, tensor.numel()));
    begin += Aligned(tensor.numel());
  }
}

}  // namespace

void NoteKept(at::TensorList activations) {
  if (t_current.noted == nullptr) return;
  for (const at::Tensor& tensor : activations) {
    if (tensor.defined()) t_current.noted->push_back(tensor.storage().getWeakStorageImpl());
  }
}

/// The end of a layer that has left.
struct LayerEnd : torch::CustomClassHolder {
  ActivationOffload* offload = nullptr;
  std::int64_t unit = 0;
  std::int64_t layer = 0;
};

/// Stands between a layer and the next: its backward comes right before that of the layer.
struct LayerEndFunction : torch::autograd::Function<LayerEndFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows,
                            const c10::intrusive_ptr<LayerEnd>& end) {
    context->saved_data["end"] = c10::IValue::make_capsule(end);
    return rows.view_as(rows);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto end = Held<LayerEnd>(context, "end");
    end->offload->Bring(end->unit, end->layer);
    return {gradients[0], {}};
  }
};

at::Tensor RunLayerAway(bool leaves, const at::Tensor& x,
                        const std::function<at::Tensor(const at::Tensor&)>& part) {
  ActivationOffload* const offload = t_current.offload;
  if (!leaves || offload == nullptr || !c10::GradMode::is_enabled()) return part(x);
  offload->WaitForRoom();
  std::vector<WeakStorage> noted;
  at::Tensor y;
  {
    struct Noting {
      explicit Noting(std::vector<WeakStorage>& noted) { t_current.noted = &noted; }
      ~Noting() { t_current.noted = nullptr; }
    } const noting(noted);
    y = part(x);
  }
  if (!y.requires_grad()) return y;
  std::vector<c10::Storage> kept = Living(noted);
  std::erase_if(kept, [&y](const c10::Storage& storage) {
    return storage.unsafeGetStorageImpl() == y.storage().unsafeGetStorageImpl();
  });
  auto end = c10::make_intrusive<LayerEnd>();
  end->offload = offload;
  end->unit = t_current.unit;
  end->layer = offload->Leave(t_current.unit, kept);
  return LayerEndFunction::apply(y, end);
}

ActivationOffload::ActivationOffload(std::unique_ptr<CopyLane> out, std::unique_ptr<CopyLane> back,
                                     bool measures)
    : measures_(measures), out_(std::move(out)), back_(std::move(back)) {}

ActivationOffload::~ActivationOffload() = default;

ActivationOffload::Scope::Scope(ActivationOffload* offload, std::int64_t unit) {
  t_current = {offload, unit, nullptr};
}

ActivationOffload::Scope::~Scope() { t_current = {}; }

void ActivationOffload::WaitForRoom() {
  const std::int64_t begin_ns = NowNs();
  if (out_->Wait(before_last_left_)) Ended(WorkKind::kActivationsWait)({begin_ns, NowNs(), {}});
}

StateMovedCallback ActivationOffload::Ended(WorkKind kind) {
  if (!measures_) return [](const WorkTimes&) {};
  return [this, kind](const WorkTimes& times) {
    const std::lock_guard lock(mutex_);
    ended_.push_back({kind, times});
  };
}

at::Tensor ActivationOffload::SideOf(std::int64_t bytes) {
  auto best = free_sides_.end();
  for (auto side = free_sides_.begin(); side != free_sides_.end(); ++side) {
    const bool better = best == free_sides_.end() || side->numel() < best->numel();
    if (side->numel() >= bytes && better) best = side;
  }
  if (best != free_sides_.end()) {
    at::Tensor side = *best;
    free_sides_.erase(best);
    return side;
  }
  if (!free_sides_.empty()) {  // too small: a larger one takes its place
    back_->Wait(last_returned_);
    free_sides_.pop_back();
  }
  return out_->HostBytes(bytes);
}

std::int64_t ActivationOffload::Leave(std::int64_t unit,
                                      const std::vector<c10::Storage>& storages) {
  const c10::AutoGradMode mode(false);
  Group group;
  for (const c10::Storage& storage : storages) group.here.push_back(BytesOf(storage));
  group.side = SideOf(BytesOf(group.here));
  std::vector<LaneCopy> copies;
  ForEachPart(group.here, group.side, [&](const at::Tensor& here, const at::Tensor& side) {
    copies.push_back({side, here});
  });
  const auto release = [here = group.here] { std::ranges::for_each(here, LetGo); };
  group.left = out_->Queue(std::move(copies), release, Ended(WorkKind::kActivationsOut));
  before_last_left_ = std::exchange(last_left_, group.left);
  units_[unit].push_back(std::move(group));
  return std::ssize(units_[unit]) - 1;
}

void ActivationOffload::StartReturn(Group& group) {
  if (group.returned != 0) return;
  Join(*out_, group.left);
  std::vector<LaneCopy> copies;
  ForEachPart(group.here, group.side, [&](const at::Tensor& here, const at::Tensor& side) {
    TakeMemory(here);
    copies.push_back({here, side});
  });
  group.returned = back_->Queue(std::move(copies), {}, Ended(WorkKind::kActivationsBack));
  last_returned_ = group.returned;
}

void ActivationOffload::Join(CopyLane& lane, CopyLane::Job job) {
  const std::int64_t begin_ns = NowNs();
  if (lane.Join(job)) Ended(WorkKind::kActivationsWait)({begin_ns, NowNs(), {}});
}

void ActivationOffload::Bring(std::int64_t unit, std::int64_t layer) {
  std::vector<Group>& groups = units_.at(unit);
  if (layer + 1 != std::ssize(groups)) {
    throw std::logic_error("expected the backward of layer " + std::to_string(groups.size() - 1) +
                           " of those whose activations have left, got that of layer " +
                           std::to_string(layer));
  }
  StartReturn(groups.back());
  Join(*back_, groups.back().returned);
  free_sides_.push_back(groups.back().side);
  groups.pop_back();
  if (!groups.empty()) return StartReturn(groups.back());
  units_.erase(unit);
  Expect(next_);
}

void ActivationOffload::Expect(std::int64_t unit) {
  const auto found = units_.find(unit);
  if (found != units_.end()) StartReturn(found->second.back());
}

void ActivationOffload::BeginBackward(std::int64_t unit, std::int64_t next) {
  next_ = next;
  WaitForRoom();
  Expect(unit);
}

void ActivationOffload::Forget(std::int64_t unit) {
  const auto node = units_.extract(unit);
  if (node.empty()) return;
  for (const Group& group : node.mapped()) {
    out_->Wait(group.left);
    back_->Wait(group.returned);
    free_sides_.push_back(group.side);
  }
}

std::vector<ConcurrentWork> ActivationOffload::TakeWork() {
  const std::lock_guard lock(mutex_);
  return std::exchange(ended_, {});
}

}  // namespace troupe
