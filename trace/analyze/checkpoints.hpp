// The time that checkpoints took, and for which training waited for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/analyze/index.hpp"

namespace troupe {

struct CheckpointTime {
  std::int64_t step = 0;        ///< the step of the checkpoint
  std::int64_t begin_ns = 0;    ///< the first device began to copy or write its shard
  std::int64_t end_ns = 0;      ///< all shards were written and the Director had committed them
  std::int64_t copy_ns = 0;     ///< until the last shard was copied; 0: it was written as it was
  std::int64_t waited_ns = 0;   ///< for which training waited: the update that waited longest
  std::int64_t on_core_ns = 0;  ///< of the threads that wrote copies; 0: unknown
  PassRecord slowest;           ///< the longest write of a shard

  std::int64_t length_ns() const { return end_ns - begin_ns; }
};

/// The checkpoints that began in [begin_ns, end_ns), by step.
std::vector<CheckpointTime> CheckpointTimesOf(const TraceIndex& index, std::int64_t begin_ns,
                                              std::int64_t end_ns);

/// The mirrors in the memory of processes.
struct MirrorTimes {
  std::int64_t mirrors = 0;
  std::int64_t on_core_ns = 0;  ///< of the threads that made their files; 0: unknown
  std::int64_t waited_ns =
      0;  ///< for which training waited: of each, the update that waited longest
};

/// Those that began in [begin_ns, end_ns). Waits for a checkpoint of the same step do not count.
MirrorTimes MirrorTimesOf(const TraceIndex& index, std::int64_t begin_ns, std::int64_t end_ns);

/// One line, with shares of `whole_ns`; empty if there are none.
std::string Format(const MirrorTimes& mirrors, std::int64_t whole_ns);

/// One line, with shares of `whole_ns`; empty if there are none.
std::string Format(const std::vector<CheckpointTime>& checkpoints, const TraceIndex& index,
                   std::int64_t whole_ns);

}  // namespace troupe
