// Small pieces of the sentences this folder says.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace troupe {

/// What the system says of an errno, as the end of a sentence: "connection refused".
std::string SystemWords(int error_number);

/// "60 s", "0.3 s".
std::string InSeconds(std::chrono::milliseconds duration);
/// Always with one decimal: "1.0 s".
std::string InTenths(std::chrono::nanoseconds duration);

/// "n1, n2, n3", from the ninth on "and 5 more".
std::string Enumerate(const std::vector<std::string>& names);

}  // namespace troupe
