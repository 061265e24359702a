// Formats numbers and parts of sentences for people; used by all folders.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// printf's output, cut to 511 characters.
[[gnu::format(printf, 1, 2)]] std::string Formatted(const char* format, ...);

/// The text with `?` for each control character, such as those that move a terminal's cursor.
std::string Printable(std::string text);

/// "1 check", "2 checks".
std::string Counted(std::int64_t count, const std::string& noun);

/// "a, b, c" of parts that `text_of` writes.
template <class Parts, class TextOf>
std::string Listed(const Parts& parts, const char* between, TextOf text_of) {
  std::string text;
  const char* before = "";
  for (const auto& part : parts) text += std::exchange(before, between) + text_of(part);
  return text;
}
std::string Listed(const std::vector<std::string>& parts, const char* between = ", ");

/// "a, b or c" of parts that `text_of` writes.
template <class Parts, class TextOf = std::identity>
std::string ListedWithOr(const Parts& parts, TextOf text_of = {}) {
  std::string text;
  auto left = parts.size();
  for (const auto& part : parts) {
    text += text_of(part);
    if (--left > 0) text += left == 1 ? " or " : ", ";
  }
  return text;
}
/// "1, 2, 4 or 8".
std::string AnyOf(const std::set<std::int64_t>& numbers);

/// Returns the parts of `text` between separators, empty ones included: at least one.
std::vector<std::string> Split(std::string_view text, char separator);
/// Returns `text` with ASCII letters in lower case, whatever the locale.
std::string InLowerCase(std::string_view text);

/// "4-7", "0-2,5": the shortest text that ParseRanks (configs/key_value.hpp) parses to `ranks`.
std::string RanksText(std::span<const int> ranks);
/// "8 ranks on 2 cores".
std::string RanksOnCores(int ranks, int cores);

std::string Fixed(double value, int decimals);
std::string Millions(std::int64_t number);              ///< "999999", "1.0M"
std::string Millis(std::int64_t ns, int decimals = 3);  ///< 1234567 -> "1.235"
std::string Duration(std::int64_t ns);  ///< "2.27 s", "180 ms", "1.50 ms", "37.0 us"
std::string InSeconds(std::chrono::milliseconds duration);  ///< "60 s", "0.3 s"
std::string InTenths(std::chrono::nanoseconds duration);    ///< always with one decimal: "1.0 s"
std::string Percent(double share);                          ///< 0.375 -> "37.5%"
std::string PercentOf(std::int64_t part,
                      std::int64_t whole);  ///< 3 of 8 -> "37.5%"; of 0 -> "0.0%"
std::string Bytes(std::uint64_t bytes);     ///< "1.5 MiB"

}  // namespace troupe
