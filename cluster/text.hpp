// Formats parts of sentences for this folder.
#pragma once

#include <string>
#include <vector>

#include "layout/text.hpp"

namespace troupe {

/// The system's text for an errno, as the end of a sentence: "connection refused".
std::string SystemWords(int error_number);

/// "n1, n2, n3"; after eight names "and 5 more".
std::string Enumerate(const std::vector<std::string>& names);

}  // namespace troupe
