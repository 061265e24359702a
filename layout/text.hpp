// Small pieces of sentences, for all folders.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace troupe {

/// What printf would print, at most 511 characters of it.
[[gnu::format(printf, 1, 2)]] std::string Formatted(const char* format, ...);

/// "1 check", "2 checks".
std::string Counted(std::int64_t count, const std::string& noun);

/// "1, 2, 4 or 8".
std::string AnyOf(const std::set<std::int64_t>& numbers);

/// "a, b, c".
std::string Listed(const std::vector<std::string>& parts, const char* between = ", ");

}  // namespace troupe
