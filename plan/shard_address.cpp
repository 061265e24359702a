#include "plan/shard_address.hpp"

namespace troupe {

std::string ToString(const ShardAddress& shard) {
  std::string text =
      shard.module + ".s" + std::to_string(shard.pp) + " dp" + std::to_string(shard.dp);
  if (shard.tp > 0) text += " tp" + std::to_string(shard.tp);
  if (shard.cp > 0) text += " cp" + std::to_string(shard.cp);
  return text + " rank " + std::to_string(shard.rank);
}

}  // namespace troupe
