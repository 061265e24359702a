#pragma once

#include <cstddef>

namespace troupe {

/// `i` as a container index; `i` must not be negative.
inline std::size_t At(int i) { return static_cast<std::size_t>(i); }

}  // namespace troupe
