#pragma once

#include <string>

namespace troupe {

/// Identifies a shard of the job: one rank's part of one pipeline stage of one module.
struct ShardAddress {
  std::string module;
  int pp = 0;  ///< stage of the module; on the ranks with pp = this % layout.pp
  int dp = 0;
  int tp = 0;
  int cp = 0;
  int rank = 0;  ///< its device
};

/// Returns "vision.s0 dp1 rank 5".
std::string ToString(const ShardAddress& shard);

}  // namespace troupe
