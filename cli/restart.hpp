// What a user is told of a job that may be, or is, started anew.
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// Where a training goes on whose run directory is `directory` and whose checkpoint.every is
/// `every`: "after step 8", or "from the beginning: " and why. Throws std::runtime_error when the
/// directory cannot be read.
std::string WhereAnew(const std::string& directory, std::int64_t every);

}  // namespace troupe
