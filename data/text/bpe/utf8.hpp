// UTF-8: characters of a text, and texts that are not UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "data/text/bpe/text_part.hpp"

namespace troupe::bpe {

/// One character: its code point and its length in bytes.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
};

/// Returns the character at byte `at` of `text`, which is UTF-8.
Character CharacterAt(std::string_view text, std::size_t at);

/// Returns the UTF-8 of a code point.
std::string Utf8Of(char32_t code);

/// Returns the number of leading bytes of `text` that are UTF-8.
std::size_t ValidPrefix(std::string_view text);

/// Returns `text` with U+FFFD for each maximal part that is not UTF-8, as Python's
/// errors="replace" does.
AlignedText WithoutBrokenUtf8(std::string_view text);

/// Whether the code point belongs to a word as `\w` of Unicode regular expressions defines it.
bool IsWordCharacter(char32_t code);
/// Whether the code point is white space (the Unicode property White_Space).
bool IsWhiteSpace(char32_t code);

}  // namespace troupe::bpe
