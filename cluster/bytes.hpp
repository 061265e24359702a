// Encodes and decodes numbers and texts in network byte order. Reading checks every length first.
//
// Both classes have Field(), so that one list of fields serves both directions.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe {

/// Bytes that do not match docs/wire.md.
struct WireError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class ByteWriter {
 public:
  void U8(std::uint8_t value) { Number(value, 1); }
  void U32(std::uint32_t value) { Number(value, 4); }
  void U64(std::uint64_t value) { Number(value, 8); }
  void Raw(std::span<const std::byte> bytes) {
    // GCC 12 reports a false overflow for insert() into a vector known to be empty.
    const std::size_t begin = bytes_.size();
    bytes_.resize(begin + bytes.size());
    if (!bytes.empty()) std::memcpy(bytes_.data() + begin, bytes.data(), bytes.size());
  }
  /// The length in 4 bytes, then the text.
  void Text(const std::string& text) {
    U32(static_cast<std::uint32_t>(text.size()));
    Raw(std::as_bytes(std::span(text)));
  }
  void Field(std::integral auto& value) {
    Number(static_cast<std::uint64_t>(value), static_cast<int>(sizeof value));
  }
  void Field(const std::string& text) { Text(text); }
  std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  void Number(std::uint64_t value, int num_bytes) {
    for (int shift = 8 * (num_bytes - 1); shift >= 0; shift -= 8)
      bytes_.push_back(static_cast<std::byte>(value >> shift));
  }
  std::vector<std::byte> bytes_;
};

/// Throws WireError instead of reading past the end.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint8_t U8() { return static_cast<std::uint8_t>(Number(1)); }
  std::uint32_t U32() { return static_cast<std::uint32_t>(Number(4)); }
  std::uint64_t U64() { return Number(8); }
  std::span<const std::byte> Raw(std::size_t size) {
    if (size > bytes_.size()) {
      throw WireError("expected " + std::to_string(size) + " more bytes, got " +
                      std::to_string(bytes_.size()));
    }
    const auto result = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return result;
  }
  std::string Text() {
    const auto raw = Raw(U32());
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }
  template <std::integral Value>
  void Field(Value& value) {
    value = static_cast<Value>(Number(sizeof value));
  }
  void Field(std::string& text) { text = Text(); }
  std::size_t left() const { return bytes_.size(); }
  /// Throws WireError if bytes are left.
  void End() const {
    if (!bytes_.empty())
      throw WireError("expected the end, got " + std::to_string(bytes_.size()) + " more bytes");
  }

 private:
  std::uint64_t Number(std::size_t num_bytes) {
    std::uint64_t value = 0;
    for (const std::byte b : Raw(num_bytes)) value = value << 8 | std::to_integer<std::uint64_t>(b);
    return value;
  }
  std::span<const std::byte> bytes_;
};

}  // namespace troupe
