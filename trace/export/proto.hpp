// The few lines of Protocol Buffers' encoding that a trace needs.
#pragma once

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
    for (int byte = 0; byte < 8; ++byte) bytes_ += static_cast<char>(value >> (8 * byte) & 0xFF);
  }
  void Text(int field, std::string_view text) {
    Raw(static_cast<std::uint64_t>(field) << 3 | 2);
    Raw(text.size());
    bytes_ += text;
  }
  void Message(int field, const ProtoWriter& message) { Text(field, message.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  void Raw(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7F) | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace troupe
