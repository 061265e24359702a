#include "layout/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace troupe {

std::string Formatted(const char* format, ...) {
  std::array<char, 512> text{};
  std::va_list values;
  va_start(values, format);
  std::vsnprintf(text.data(), text.size(), format, values);
  va_end(values);
  return text.data();
}

std::string Printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return text;
}

std::string Counted(std::int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string AnyOf(const std::set<std::int64_t>& numbers) {
  return ListedWithOr(numbers, [](std::int64_t number) { return std::to_string(number); });
}

std::string Listed(const std::vector<std::string>& parts, const char* between) {
  return Listed(parts, between, [](const std::string& part) { return part; });
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string InLowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

std::string RanksText(std::span<const int> ranks) {
  std::string text;
  for (std::size_t begin = 0; begin < ranks.size();) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(ranks[begin]);
    if (end - begin > 1) text += '-' + std::to_string(ranks[end - 1]);
    begin = end;
  }
  return text;
}

std::string RanksOnCores(int ranks, int cores) {
  return Counted(ranks, "rank") + " on " + Counted(cores, "core");
}

std::string Millions(std::int64_t number) {
  return number < 1'000'000 ? std::to_string(number)
                            : Formatted("%.1fM", static_cast<double>(number) / 1e6);
}

std::string Fixed(double value, int decimals) { return Formatted("%.*f", decimals, value); }

std::string Millis(std::int64_t ns, int decimals) {
  return Fixed(static_cast<double>(ns) / 1e6, decimals);
}

std::string Duration(std::int64_t ns) {
  if (ns == 0) return "0";
  const double value = std::abs(static_cast<double>(ns));
  const auto with = [&](double unit, const char* name) {
    const double shown = static_cast<double>(ns) / unit;
    return Fixed(shown, std::abs(shown) < 9.995 ? 2 : std::abs(shown) < 99.95 ? 1 : 0) + name;
  };
  if (value >= 1e9) return with(1e9, " s");
  if (value >= 1e6) return with(1e6, " ms");
  return with(1e3, " us");
}

std::string InSeconds(std::chrono::milliseconds duration) {
  return Formatted("%.4g s", static_cast<double>(duration.count()) / 1e3);
}

std::string InTenths(std::chrono::nanoseconds duration) {
  return Formatted("%.1f s", static_cast<double>(duration.count()) / 1e9);
}

std::string Percent(double share) { return Fixed(100 * share, 1) + "%"; }

std::string PercentOf(std::int64_t part, std::int64_t whole) {
  return Percent(whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0);
}

std::string Bytes(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= (1ULL << 40)) return Fixed(value / (1LL << 40), 2) + " TiB";
  if (bytes >= (1ULL << 30)) return Fixed(value / (1LL << 30), 2) + " GiB";
  if (bytes >= (1ULL << 20)) return Fixed(value / (1LL << 20), 1) + " MiB";
  if (bytes >= 1024) return Fixed(value / 1024, 1) + " KiB";
  return std::to_string(bytes) + " B";
}

}  // namespace troupe
