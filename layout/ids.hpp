// Identities in a job: a process, a pipeline stage, a shard.
#pragma once

#include <compare>
#include <string>

namespace troupe {

/// Number of a process in the job, [0, n); the same in every process.
using ProcessId = int;

struct StageId {
  std::string module;
  int number = 0;  ///< among the module's stages

  auto operator<=>(const StageId&) const = default;
};

/// "vision.s0".
inline std::string ToString(const StageId& stage) {
  return stage.module + ".s" + std::to_string(stage.number);
}

/// One rank's part of one pipeline stage of one module.
struct ShardAddress {
  std::string module;
  int pp = 0;  ///< stage of the module; on the ranks with pp = this % layout.pp
  int dp = 0;
  int tp = 0;
  int cp = 0;
  int rank = 0;  ///< its device
};

/// "vision.s0 dp1 rank 5".
inline std::string ToString(const ShardAddress& shard) {
  std::string text = ToString(StageId{shard.module, shard.pp}) + " dp" + std::to_string(shard.dp);
  if (shard.tp > 0) text += " tp" + std::to_string(shard.tp);
  if (shard.cp > 0) text += " cp" + std::to_string(shard.cp);
  return text + " rank " + std::to_string(shard.rank);
}

}  // namespace troupe
