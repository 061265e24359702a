// Small pieces of the sentences this folder says.
#pragma once

#include <string>
#include <vector>

#include "layout/text.hpp"

namespace troupe {

/// What the system says of an errno, as the end of a sentence: "connection refused".
std::string SystemWords(int error_number);

/// "n1, n2, n3", from the ninth on "and 5 more".
std::string Enumerate(const std::vector<std::string>& names);

}  // namespace troupe
