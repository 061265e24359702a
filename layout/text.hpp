// Formats numbers and parts of sentences for people; used by all folders.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace troupe {

/// printf's output, cut to 511 characters.
[[gnu::format(printf, 1, 2)]] std::string Formatted(const char* format, ...);

/// "1 check", "2 checks".
std::string Counted(std::int64_t count, const std::string& noun);

/// "1, 2, 4 or 8".
std::string AnyOf(const std::set<std::int64_t>& numbers);

/// "a, b, c".
std::string Listed(const std::vector<std::string>& parts, const char* between = ", ");

std::string Fixed(double value, int decimals);
std::string Millis(std::int64_t ns, int decimals = 3);  ///< 1234567 -> "1.235"
std::string Duration(std::int64_t ns);  ///< "2.27 s", "180 ms", "1.50 ms", "37.0 us"
std::string InSeconds(std::chrono::milliseconds duration);  ///< "60 s", "0.3 s"
std::string InTenths(std::chrono::nanoseconds duration);    ///< always with one decimal: "1.0 s"
std::string Percent(double share);                          ///< 0.375 -> "37.5%"
std::string Bytes(std::int64_t bytes);                      ///< "1.5 MiB"

}  // namespace troupe
