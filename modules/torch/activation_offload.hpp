// Activations of layers that are in host memory between a forward and its backward.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <torch/types.h>
#include <vector>

#include "modules/stage_program.hpp"
#include "modules/torch/copy_lane.hpp"

namespace troupe {

/// part(x), a layer. If `leaves`, within an ActivationOffload::Scope and with grad mode on, what its
/// nodes keep (NoteKept) leaves the device after it and is back before its backward begins: the
/// storage has no memory meanwhile, then gets other memory with the same contents.
at::Tensor RunLayerAway(bool leaves, const at::Tensor& x,
                        const std::function<at::Tensor(const at::Tensor&)>& part);

/// One per shard. All calls are made on the rank's thread.
///
/// A layer begins when all layers but the one before it have left. In a backward a layer waits for its
/// activations, and those of the layer below begin to return; after the lowest layer, those of the
/// backward that comes next, if that is known. So three layers are on the device at most.
class ActivationOffload {
 public:
  /// `measures`: times of copies and waits are known, and recorded. Those of a GPU are not: the host
  /// knows when it queued them.
  ActivationOffload(std::unique_ptr<CopyLane> out, std::unique_ptr<CopyLane> back, bool measures);
  ActivationOffload(const ActivationOffload&) = delete;
  ActivationOffload& operator=(const ActivationOffload&) = delete;
  ~ActivationOffload();

  /// While it lives, layers that this thread runs belong to `unit`.
  class Scope {
   public:
    Scope(ActivationOffload* offload, std::int64_t unit);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
  };

  /// The backward of this unit comes next: what it needs first begins to return. Does nothing if
  /// nothing of the unit has left.
  void Expect(std::int64_t unit);
  /// The backward of `unit` begins; that of `next` follows, if it is known.
  void BeginBackward(std::int64_t unit, std::int64_t next);
  /// The backward of `unit` is over: drops what it did not need.
  void Forget(std::int64_t unit);
  /// Copies that have ended, and waits for copies.
  std::vector<ConcurrentWork> TakeWork();

 private:
  friend at::Tensor RunLayerAway(bool, const at::Tensor&,
                                 const std::function<at::Tensor(const at::Tensor&)>&);
  friend struct LayerEndFunction;

  /// The activations of a layer.
  struct Group {
    std::vector<at::Tensor> here;  ///< [bytes], one for each storage
    at::Tensor side;               ///< [bytes] in host memory
    CopyLane::Job left = 0;
    CopyLane::Job returned = 0;  ///< 0: it does not return yet
  };

  /// Waits until all layers but the last have left.
  void WaitForRoom();
  /// Takes away the activations that `storages` hold. Returns the number of the layer among those of
  /// its unit that have left.
  std::int64_t Leave(std::int64_t unit, const std::vector<c10::Storage>& storages);
  void StartReturn(Group& group);
  /// The backward of this layer of `unit` begins. Throws std::logic_error unless it is the top one of
  /// those that have left.
  void Bring(std::int64_t unit, std::int64_t layer);
  at::Tensor SideOf(std::int64_t bytes);
  StateMovedCallback Ended(WorkKind kind);
  void Join(CopyLane& lane, CopyLane::Job job);

  std::map<std::int64_t, std::vector<Group>> units_;  ///< in the order of the forward
  std::vector<at::Tensor> free_sides_;
  CopyLane::Job last_left_ = 0;
  CopyLane::Job before_last_left_ = 0;
  CopyLane::Job last_returned_ = 0;
  bool measures_;
  std::int64_t next_ = kNoUnit;  ///< unit of the backward after this one
  std::mutex mutex_;             ///< guards ended_
  std::vector<ConcurrentWork> ended_;
  std::unique_ptr<CopyLane> out_;  ///< destroyed first, as callbacks use the rest
  std::unique_ptr<CopyLane> back_;
};

}  // namespace troupe
