// The time for which a run paused to write checkpoints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/analyze/index.hpp"

namespace troupe {

struct CheckpointTime {
  std::int64_t step = 0;      ///< the step of the checkpoint
  std::int64_t begin_ns = 0;  ///< the first device began to write its shard
  std::int64_t end_ns = 0;    ///< all shards were written and the Director had committed them
  int longest = -1;           ///< index of the work that wrote the slowest shard

  std::int64_t length_ns() const { return end_ns - begin_ns; }
};

/// The checkpoints that began in [begin_ns, end_ns), by time.
std::vector<CheckpointTime> CheckpointTimesOf(const TraceIndex& index, std::int64_t begin_ns,
                                              std::int64_t end_ns);

/// One line, with shares of `whole_ns`; empty if there are none.
std::string Format(const std::vector<CheckpointTime>& checkpoints, const TraceIndex& index,
                   std::int64_t whole_ns);

}  // namespace troupe
