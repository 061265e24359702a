// How long work takes in virtual time (actors/virtual_time.hpp).
#pragma once

#include <cstdint>
#include <functional>

#include "trace/pass_record.hpp"

namespace troupe {

/// In ns, 0 or more. `stage` is its index in the StageGraph.
using WorkTime = std::function<std::int64_t(WorkKind kind, int stage, std::int64_t unit)>;

}  // namespace troupe
