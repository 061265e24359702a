// The parts of the key table, one source each; configs/schema.hpp has the whole.
#pragma once

#include <vector>

#include "configs/schema.hpp"

namespace troupe {

inline constexpr Range kCount{1, kMaxCount};
inline constexpr Range kCountOrNone{0, kMaxCount};
inline constexpr Range kPositive{.low = 0, .above_low = true};
inline constexpr Range kNotNegative{.low = 0};

std::vector<KeySpec> RunKeys();      ///< top level, run, schedule, optimizer, data, trace
std::vector<KeySpec> ClusterKeys();  ///< cluster, its nodes, transport, checkpoint
std::vector<KeySpec> ModuleKeys();   ///< of every module, its layout, input and optimizer
std::vector<KeySpec> VitKeys();
std::vector<KeySpec> LlamaKeys();
std::vector<KeySpec> SyntheticKeys();
std::vector<KeySpec> EdgeKeys();

}  // namespace troupe
