// Messages between the two ends of a boundary. They carry handles; a receiver that needs the bytes
// fetches them (transport/tensor_store.hpp). See layout/route.hpp for which rows go where.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/pipeline.hpp"
#include "trace/unit_place.hpp"
#include "transport/buffer.hpp"

namespace troupe {

/// The rows of `microbatch` that source shard `source` has for the receiving leader; may be empty.
struct Slice {
  static constexpr RequestWords kWords{"slice", "gradient", RequestUnit::kMicrobatch};
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
  int peer = 0;  ///< the shard at the other end
  Buffer buffer;
  bool asked = false;  ///< they were requested, which takes one more round trip between processes
};
inline auto Fields(SliceArrived& x) { return std::tie(x.microbatch, x.peer, x.buffer, x.asked); }

using SourceLeader = Downstream::extend<caf::reacts_to<SliceArrived>>;
using DestinationLeader =
    caf::typed_actor<caf::replies_to<Slice>::with<GradientSlice>, caf::reacts_to<SliceArrived>>;

}  // namespace troupe
