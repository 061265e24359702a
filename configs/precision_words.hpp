#pragma once

#include <string>
#include <vector>

namespace troupe {

/// In the order of Precision (configs/config.hpp).
inline const std::vector<std::string> kPrecisionWords = {"float32", "float64", "bfloat16"};

}  // namespace troupe
