// How long a run stood still while checkpoints were written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/analyze/index.hpp"

namespace troupe {

struct CheckpointTime {
  std::int64_t step = 0;      ///< that it is of
  std::int64_t begin_ns = 0;  ///< when the first device began to write its shard
  /// When the last one had written its own, and the Director had made the files a checkpoint.
  std::int64_t end_ns = 0;
  int longest = -1;  ///< index of the work that was the slowest shard

  std::int64_t length_ns() const { return end_ns - begin_ns; }
};

/// By time; those that began from `begin_ns` on, before `end_ns`.
std::vector<CheckpointTime> CheckpointTimesOf(const TraceIndex& index, std::int64_t begin_ns,
                                              std::int64_t end_ns);

/// One line, with shares of `whole_ns`; empty of none.
std::string Format(const std::vector<CheckpointTime>& checkpoints, const TraceIndex& index,
                   std::int64_t whole_ns);

}  // namespace troupe
