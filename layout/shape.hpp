// The sizes of a tensor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace troupe {

/// Outermost first; {} is a scalar.
using Shape = std::vector<std::int64_t>;

inline std::int64_t NumElements(const Shape& shape) {
  // Checked first: next to a zero, the other sizes may be arbitrarily large.
  if (std::ranges::count(shape, 0) > 0) return 0;
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::string ToString(const Shape& shape);  ///< "[16, 64]"

}  // namespace troupe
