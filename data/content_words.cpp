#include "data/content_words.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace troupe {
namespace {

constexpr std::array<std::string_view, 21> kStopWords = {
    "a",   "an", "and", "are", "at",  "by",    "for", "from", "in",   "is",  "it",
    "its", "of", "on",  "or",  "the", "there", "to",  "with", "this", "that"};

bool IsWordByte(char c) {
  // Not std::isalnum: the result must not depend on the locale.
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool IsStopWord(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return std::find(kStopWords.begin(), kStopWords.end(), lower) != kStopWords.end();
}

}  // namespace

std::vector<std::uint8_t> ContentBytes(std::string_view text) {
  std::vector<std::uint8_t> content(text.size(), 0);
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && IsWordByte(text[end])) ++end;
    if (!IsStopWord(text.substr(begin, end - begin))) {
      std::fill(content.begin() + static_cast<std::ptrdiff_t>(begin),
                content.begin() + static_cast<std::ptrdiff_t>(end), std::uint8_t{1});
    }
    begin = std::max(end, begin + 1);
  }
  return content;
}

}  // namespace troupe
