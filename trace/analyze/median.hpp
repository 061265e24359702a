// Medians of samples.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace troupe {

/// The median; the mean of the two middle values for an even count; 0 for an empty list.
template <class Number>
Number Median(std::vector<Number> values) {
  if (values.empty()) return Number{};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const Number below = *std::max_element(values.begin(), middle);
  return below + (*middle - below) / 2;
}

template <class Key, class Number>
std::map<Key, Number> Medians(std::map<Key, std::vector<Number>> samples) {
  std::map<Key, Number> medians;
  for (auto& [key, values] : samples) medians[key] = Median(std::move(values));
  return medians;
}

}  // namespace troupe
