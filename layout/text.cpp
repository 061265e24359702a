#include "layout/text.hpp"

#include <array>
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

std::string Counted(std::int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string AnyOf(const std::set<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t number : numbers) {
    if (!text.empty()) text += number == *numbers.rbegin() ? " or " : ", ";
    text += std::to_string(number);
  }
  return text;
}

std::string Listed(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

}  // namespace troupe
