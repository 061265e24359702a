// The sizes of a tensor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// Outermost first; {} is a scalar.
using Shape = std::vector<std::int64_t>;

std::int64_t NumElements(const Shape& shape);
std::string ToString(const Shape& shape);  ///< "[16, 64]"

}  // namespace troupe
