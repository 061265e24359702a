// The order in which a replica reduces the gradients of its buckets: the one decision on which all
// replicas must agree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/flat_layout.hpp"

namespace troupe {

/// A place in the forward of a part: before a layer, or before what follows the layers.
struct GatePlace {
  std::vector<std::size_t> used;  ///< buckets that the forward uses from here on
  /// Those, and the later ones of the part: their gradients are complete when the backward comes here.
  std::vector<std::size_t> complete;
};

/// The buckets of layers come first, from the last to the first, then those that no gate announces,
/// then the `late` ones. A bucket starts when it is complete and all before it have started, so the
/// order does not depend on which gates a backward passes: a replica without images passes none of
/// the encoder's.
class BucketOrder {
 public:
  /// `late[b]`: the gradients of bucket b are complete only at the end of the step.
  BucketOrder(const FlatLayout& layout, const std::vector<bool>& late);

  /// The gate before a layer of a part, or before what follows its layers.
  GatePlace GateOf(const std::string& part, BucketPlace place, std::int64_t layer) const;
  /// The buckets in the order in which a forward uses them, which is the reverse.
  const std::vector<std::size_t>& forward() const { return forward_; }

  /// The last backward of a step is back at a gate. Returns the buckets to start.
  std::vector<std::size_t> Leave(const GatePlace& gate);
  /// The step is complete. Returns all that have not started.
  std::vector<std::size_t> Finish();

 private:
  std::vector<BucketKey> keys_;
  std::vector<std::size_t> forward_;
  std::size_t num_announced_ = 0;  ///< by gates; the last of forward_
  std::vector<bool> complete_;
  std::size_t num_started_ = 0;
};

}  // namespace troupe
