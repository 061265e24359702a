#pragma once

#include <cstddef>

namespace troupe {

/// `i` as what containers count in; `i` must not be negative.
inline std::size_t At(int i) { return static_cast<std::size_t>(i); }

}  // namespace troupe
