#include "data/text/bpe/byte_letters.hpp"

#include <array>

#include "data/text/bpe/utf8.hpp"

namespace troupe::bpe {
namespace {

constexpr char32_t kFirstStandIn = 0x100;
constexpr std::size_t kNumStandIns = 68;

/// Printable characters of Latin-1 are their own letters, without the space and the soft hyphen.
constexpr bool IsOwnLetter(char32_t code) {
  return (code >= 0x21 && code <= 0x7e) || (code >= 0xa1 && code <= 0xff && code != 0xad);
}

/// The letters of the other bytes are U+0100 and the following, in the order of the bytes.
constexpr std::array<std::uint8_t, kNumStandIns> StandIns() {
  std::array<std::uint8_t, kNumStandIns> bytes{};
  std::size_t count = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (!IsOwnLetter(byte)) bytes[count++] = static_cast<std::uint8_t>(byte);
  }
  return bytes;
}
constexpr std::array<std::uint8_t, kNumStandIns> kStandIns = StandIns();

}  // namespace

std::string LetterOf(std::uint8_t byte) {
  if (IsOwnLetter(byte)) return Utf8Of(byte);
  char32_t place = 0;
  while (kStandIns[place] != byte) ++place;
  return Utf8Of(kFirstStandIn + place);
}

std::optional<std::string> BytesOf(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    const Character letter = CharacterAt(text, at);
    if (IsOwnLetter(letter.code)) {
      bytes += static_cast<char>(letter.code);
    } else if (letter.code >= kFirstStandIn && letter.code < kFirstStandIn + kNumStandIns) {
      bytes += static_cast<char>(kStandIns[letter.code - kFirstStandIn]);
    } else {
      return std::nullopt;
    }
    at += letter.bytes;
  }
  return bytes;
}

}  // namespace troupe::bpe
