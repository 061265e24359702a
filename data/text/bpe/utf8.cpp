#include "data/text/bpe/utf8.hpp"

#include <cstdint>
#include <cstring>
#include <utf8proc.h>

namespace troupe::bpe {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

std::uint8_t Byte(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

/// A sequence of bytes that begins a character: `length` of them are right, `whole` if that is all.
struct Sequence {
  std::size_t length = 0;
  bool whole = false;
};

/// Reads the sequence at `at` by table 3-7 of the Unicode standard.
Sequence ReadSequence(std::string_view text, std::size_t at) {
  const std::uint8_t lead = Byte(text, at);
  if (lead < 0x80) return {1, true};
  if (lead < 0xc2 || lead > 0xf4) return {1, false};
  const std::size_t wanted = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The second byte has fewer values after some first ones: no long forms, no surrogates.
  const std::uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const std::uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (std::size_t i = 1; i < wanted; ++i) {
    if (at + i >= text.size()) return {i, false};
    const std::uint8_t byte = Byte(text, at + i);
    if (byte < (i == 1 ? low : 0x80) || byte > (i == 1 ? high : 0xbf)) return {i, false};
  }
  return {wanted, true};
}

}  // namespace

Character CharacterAt(std::string_view text, std::size_t at) {
  const auto bits = [&](std::size_t i) {
    return static_cast<char32_t>(Byte(text, at + i) & 0x3fU);
  };
  const std::uint8_t lead = Byte(text, at);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xe0) return {(lead & 0x1fU) << 6U | bits(1), 2};
  if (lead < 0xf0) return {(lead & 0x0fU) << 12U | bits(1) << 6U | bits(2), 3};
  return {(lead & 0x07U) << 18U | bits(1) << 12U | bits(2) << 6U | bits(3), 4};
}

std::string Utf8Of(char32_t code) {
  std::string text(4, '\0');
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code),
                                           reinterpret_cast<utf8proc_uint8_t*>(text.data()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::size_t ValidPrefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    // Eight ASCII characters at a time.
    std::uint64_t word = 0;
    if (at + sizeof word <= text.size()) {
      std::memcpy(&word, text.data() + at, sizeof word);
      if ((word & 0x8080808080808080U) == 0) {
        at += sizeof word;
        continue;
      }
    }
    const Sequence sequence = ReadSequence(text, at);
    if (!sequence.whole) return at;
    at += sequence.length;
  }
  return at;
}

AlignedText WithoutBrokenUtf8(std::string_view text) {
  AlignedText repaired;
  repaired.Reserve(text.size());
  const TextPart whole{text};
  for (std::size_t at = 0; at < text.size();) {
    const Sequence sequence = ReadSequence(text, at);
    const std::size_t end = at + sequence.length;
    if (sequence.whole) {
      repaired.Keep(whole, at, end);
    } else {
      repaired.Append(kReplacement,
                      {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(end)});
    }
    at = end;
  }
  return repaired;
}

bool IsWordCharacter(char32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return code == 0x200c || code == 0x200d;  // joiners
  }
}

bool IsWhiteSpace(char32_t code) {
  return (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
         code == 0x202f || code == 0x205f || code == 0x3000;
}

}  // namespace troupe::bpe
