#pragma once

#include <string>
#include <vector>

namespace troupe {

/// A line per row; columns to the left, two blanks between, no trailing blanks.
std::string Columns(const std::vector<std::vector<std::string>>& rows);

}  // namespace troupe
