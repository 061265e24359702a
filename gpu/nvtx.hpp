// Ranges that NVIDIA's tools show on the time line of a thread. Without such a tool, or without
// CUDA, they cost next to nothing.
#pragma once

#include <string>

namespace troupe::gpu {

/// What the calling thread does while this lives: "vision.s0/microbatch 3/forward". Ranges of a
/// thread lie within each other.
class Range {
 public:
#ifdef TROUPE_HAS_CUDA
  explicit Range(const std::string& name);
  ~Range();
#else
  explicit Range(const std::string&) {}
  ~Range() = default;
#endif
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

}  // namespace troupe::gpu
