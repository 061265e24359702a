#include "files/tf_record.hpp"

#include <array>

namespace troupe {
namespace {

constexpr std::array<std::uint32_t, 256> MakeTable() {
  constexpr std::uint32_t kReversedPolynomial = 0x82F63B78U;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) {
      remainder = remainder >> 1 ^ ((remainder & 1) != 0 ? kReversedPolynomial : 0);
    }
    table[byte] = remainder;
  }
  return table;
}

std::string LittleEndian(std::uint64_t value, int size) {
  std::string bytes;
  for (int byte = 0; byte < size; ++byte) bytes += static_cast<char>(value >> (8 * byte) & 0xFF);
  return bytes;
}

}  // namespace

std::uint32_t Crc32c(std::string_view bytes) {
  static constexpr auto kTable = MakeTable();
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char byte : bytes) {
    crc = kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF] ^ crc >> 8;
  }
  return ~crc;
}

std::uint32_t MaskedCrc32c(std::string_view bytes) {
  const std::uint32_t crc = Crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

std::string TfRecord(std::string_view bytes) {
  const std::string length = LittleEndian(bytes.size(), 8);
  return length + LittleEndian(MaskedCrc32c(length), 4) + std::string(bytes) +
         LittleEndian(MaskedCrc32c(bytes), 4);
}

}  // namespace troupe
