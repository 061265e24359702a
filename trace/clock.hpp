// The clock of all recorded times: steady, in nanoseconds.
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe {

inline std::int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace troupe
