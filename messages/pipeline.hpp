// Messages between stages, directly inside a module and through leaders at a boundary. They carry
// handles; a receiver that needs the bytes fetches them (transport/tensor_store.hpp). The gradient
// is the answer to the activation: an unanswered request is a unit in flight.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/fields.hpp"
#include "transport/buffer.hpp"

namespace troupe {

/// The output of `unit`, which belongs to the receiver from now on.
struct Activation {
  static constexpr RequestWords kWords{"activation", "gradient", WaitUnit::kMicrobatch};
  std::int64_t unit = 0;
  int link = 0;  ///< the receiver's number for the incoming link
  /// One buffer per shard of the receiver, or a single one that all its shards read.
  std::vector<Buffer> shards;
  std::shared_ptr<const RowTable> rows;  ///< which samples the rows belong to
  UnitPlace place = {};  ///< of the unit, for errors of boundary leaders; unset by a phase
};
inline auto Fields(Activation& x) { return std::tie(x.unit, x.link, x.shards, x.rows, x.place); }

/// The answer to an Activation: d(loss)/d(activation), as one buffer per shard of its sender or a
/// single one for all. Empty: nothing upstream of the link trains, so there is no gradient.
struct Gradient {
  std::int64_t unit = 0;
  std::vector<Buffer> shards;
};
inline auto Fields(Gradient& x) { return std::tie(x.unit, x.shards); }

/// An actor that takes activations: the next stage, a boundary leader, a Phase.
using Downstream = caf::typed_actor<caf::replies_to<Activation>::with<Gradient>>;

// Between the two ends of a boundary; see layout/route.hpp for which rows go where.

/// The rows of `microbatch` that source shard `source` has for the receiving leader; may be empty.
struct Slice {
  static constexpr RequestWords kWords{"slice", "gradient", WaitUnit::kMicrobatch};
  std::int64_t microbatch = 0;
  int source = 0;
  Buffer buffer;                         ///< [rows, ...]
  std::shared_ptr<const RowTable> rows;  ///< the address of every row, in order
  UnitPlace place = {};                  ///< of the microbatch, for errors
};
inline auto Fields(Slice& x) { return std::tie(x.microbatch, x.source, x.buffer, x.rows, x.place); }

/// The answer: the gradient of those rows. Undefined if nothing upstream trains.
struct GradientSlice {
  std::int64_t microbatch = 0;
  Buffer buffer;
};
inline auto Fields(GradientSlice& x) { return std::tie(x.microbatch, x.buffer); }

/// From a leader to itself: the bytes of one slice have arrived in this process.
struct SliceArrived {
  std::int64_t microbatch = 0;
  int peer = 0;  ///< the shard at the other end; of the stage's gradient, the rank along tp
  Buffer buffer;
  bool asked = false;  ///< they were requested, which takes one more round trip between processes
  bool of_stage = false;  ///< they are of the gradient with which the stage has answered
};
inline auto Fields(SliceArrived& x) {
  return std::tie(x.microbatch, x.peer, x.buffer, x.asked, x.of_stage);
}

using SourceLeader = Downstream::extend<caf::reacts_to<SliceArrived>>;
using DestinationLeader =
    caf::typed_actor<caf::replies_to<Slice>::with<GradientSlice>, caf::reacts_to<SliceArrived>>;

}  // namespace troupe
