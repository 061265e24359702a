#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace troupe {

/// The middle one; of an even number the upper of the two; 0 of none.
template <class Number>
Number Median(std::vector<Number> values) {
  if (values.empty()) return Number{};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace troupe
