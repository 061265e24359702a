// The state of a shard, part of which is away from its device at times.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <torch/types.h>
#include <vector>

#include "configs/config.hpp"
#include "modules/stage_program.hpp"
#include "modules/torch/copy_lane.hpp"
#include "modules/torch/parameter_store.hpp"

namespace troupe {

/// Flat tensors whose memory is released and allocated again. Views of them (parameters, tensors
/// saved by graphs) stay valid: they share the storage, which has no memory meanwhile and then gets
/// other memory with the same contents. All calls are made on the rank's thread.
///
///   here -Leave-> leaving -> away -Return-> returning -> here
///
/// Tensors that have not changed since they were last copied out are not copied again.
class OffloadedState {
 public:
  /// kNone: nothing ever leaves, and only Require and MarkChanged may be called. `who` begins the
  /// texts of errors.
  OffloadedState(std::string who, Offload what, std::vector<FlatState> flats,
                 std::unique_ptr<CopyLane> lane);

  /// Whether anything ever does.
  bool leaves() const { return lane_ != nullptr; }
  /// Throws std::logic_error unless all tensors that leave are on the device; those that an earlier
  /// Return left away may be away.
  void Leave(StateMovedCallback done);
  /// Throws std::logic_error unless the state is away. Tensors that only the update needs come
  /// after the rest, or stay away.
  void Return(bool all, StateMovedCallback done);

  /// Called before `action` uses the state: throws std::logic_error if it is away. Waits for
  /// tensors that are still on their way.
  void Require(StateUse use, const char* action) const;
  /// `use` has been written to.
  void MarkChanged(StateUse use);
  std::size_t bytes_away() const;

 private:
  enum class Place { kHere, kLeaving, kAway, kReturning };
  struct Flat {
    FlatState state;
    bool leaves = false;
    bool here = true;
    bool changed = true;  ///< since it was copied to `side`
    at::Tensor side;
  };

  void RequirePlace(Place place, const char* action) const;
  std::vector<LaneCopy> TakeBack(bool (*wanted)(StateUse));
  bool IsHere(StateUse use) const;

  std::string who_;
  std::vector<Flat> flats_;
  std::atomic<Place> place_ = Place::kHere;  ///< written by the lane where it ends a way
  CopyLane::Job last_return_ = 0;            ///< of what only the update needs
  std::unique_ptr<CopyLane> lane_;           ///< destroyed first: its copies use the rest
};

}  // namespace troupe
