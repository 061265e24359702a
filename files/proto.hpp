// Writes Protocol Buffers' encoding, for the files of Perfetto and of TensorBoard.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Builds one message, field after field.
class ProtoWriter {
 public:
  void Varint(int field, std::uint64_t value) {
    Raw(static_cast<std::uint64_t>(field) << 3);
    Raw(value);
  }
  void Fixed64(int field, std::uint64_t value) {
    Raw(static_cast<std::uint64_t>(field) << 3 | 1);
    Fixed(value, 8);
  }
  void Double(int field, double value) { Fixed64(field, std::bit_cast<std::uint64_t>(value)); }
  void Float(int field, float value) {
    Raw(static_cast<std::uint64_t>(field) << 3 | 5);
    Fixed(std::bit_cast<std::uint32_t>(value), 4);
  }
  void Text(int field, std::string_view text) {
    Raw(static_cast<std::uint64_t>(field) << 3 | 2);
    Raw(text.size());
    bytes_ += text;
  }
  void Message(int field, const ProtoWriter& message) { Text(field, message.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  void Fixed(std::uint64_t value, int size) {
    for (int byte = 0; byte < size; ++byte) bytes_ += static_cast<char>(value >> (8 * byte) & 0xFF);
  }
  void Raw(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7F) | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace troupe
