// What the two ends of a boundary say to each other. The bytes go over transport/; a message
// announces them. See layout/route.hpp for which rows go where.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/pipeline.hpp"
#include "transport/endpoint.hpp"

namespace troupe {

/// Rows of `microbatch` that source shard `source` gives to the receiving leader. If there are any,
/// they have been handed to the transport under `tag`.
struct Slice {
  std::int64_t microbatch = 0;
  int source = 0;
  Tag tag = 0;
  Shape shape;  ///< [rows, ...] of the bytes under `tag`
  DType dtype = DType::kFloat32;
  std::shared_ptr<const RowTable> rows;  ///< the address of every row, in order
};

/// The answer: the gradient of those rows has been handed to the transport under `tag`.
struct GradientSlice {
  std::int64_t microbatch = 0;
  Tag tag = 0;
  bool none = false;  ///< nothing upstream trains: no bytes follow
  Shape shape;
  DType dtype = DType::kFloat32;
};

/// The transport has put the bytes of one slice where they belong (a leader tells itself).
struct SliceArrived {
  std::int64_t microbatch = 0;
  int peer = 0;  ///< the shard at the other end
  Buffer buffer;
};

using SourceLeader = Downstream::extend<caf::reacts_to<SliceArrived>>;
using DestinationLeader =
    caf::typed_actor<caf::replies_to<Slice>::with<GradientSlice>, caf::reacts_to<SliceArrived>>;

}  // namespace troupe

TROUPE_LOCAL_MESSAGE(troupe::Slice)
TROUPE_LOCAL_MESSAGE(troupe::GradientSlice)
TROUPE_LOCAL_MESSAGE(troupe::SliceArrived)
