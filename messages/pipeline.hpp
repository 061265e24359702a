// Messages between stages, directly inside a module and through leaders at a boundary.
// The gradient is the answer to the activation: an unanswered request is a unit in flight.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/fields.hpp"
#include "messages/request_words.hpp"
#include "messages/wire.hpp"
#include "modules/stage_program.hpp"
#include "trace/unit_place.hpp"
#include "transport/buffer.hpp"

namespace troupe {

/// The output of `unit`, which belongs to the receiver from now on.
struct Activation {
  static constexpr RequestWords kWords{"activation", "gradient", RequestUnit::kMicrobatch};
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

}  // namespace troupe
