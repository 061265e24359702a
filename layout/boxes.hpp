// Runs of a tensor's elements as boxes.
#pragma once

#include <cstdint>
#include <vector>

#include "layout/route.hpp"
#include "layout/shape.hpp"

namespace troupe {

/// A part of a tensor with an interval of each dimension. Both have one entry per dimension.
struct Box {
  std::vector<std::int64_t> offsets;
  Shape shape;
  friend bool operator==(const Box&, const Box&) = default;
};

/// Returns the boxes that elements [begin, end) of a row-major tensor of `shape` consist of, in
/// their order. Each is a run of neighbours. They are as few as possible: at most 2n - 1 for n
/// dimensions; none for an empty interval.
std::vector<Box> BoxesOf(const Shape& shape, const Interval& elements);

}  // namespace troupe
