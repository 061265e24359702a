// Ranges on a thread's timeline in NVIDIA's tools. Almost free without such a tool or without CUDA.
#pragma once

#include <string>

namespace troupe::gpu {

/// The calling thread's activity while this lives: "vision.s0/microbatch 3/forward". The ranges of
/// a thread must nest.
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
