#include "layout/shape.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace troupe {

std::int64_t NumElements(const Shape& shape) {
  // Checked first: next to a zero, the other sizes may be arbitrarily large.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::string ToString(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace troupe
