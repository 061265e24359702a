// Looks for values that are no numbers before anybody trains on them.
#pragma once

#include <optional>
#include <string>

#include "transport/buffer.hpp"

namespace troupe {

/// "nan at row 3" for the first element that is NaN or infinite; nullopt when all are finite.
/// Buffers of integers are finite.
std::optional<std::string> NonFinite(const Buffer& buffer);

}  // namespace troupe
