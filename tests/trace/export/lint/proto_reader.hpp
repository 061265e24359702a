// Reads Protocol Buffers' encoding: the other end of files/proto.hpp.
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe {

/// One field of a message that is being read.
struct ProtoField {
  int number = 0;
  int wire = 0;             ///< 0 varint, 1 eight bytes, 2 text or message, 5 four bytes
  std::uint64_t value = 0;  ///< of wires 0, 1 and 5
  std::string_view bytes;   ///< of wire 2
};

/// Reads the fields of a message in order. Never reads beyond it, whatever is in it.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) : bytes_(bytes) {}

  /// False at the end, and when what follows is no field: then broken() is true.
  bool Next(ProtoField& field) {
    std::uint64_t key = 0;
    if (at_ == bytes_.size()) return false;
    broken_ = !Raw(key) || (key >> 3) == 0 || (key >> 3) > 0x1FFFFFFF;
    if (broken_) return false;
    field = {static_cast<int>(key >> 3), static_cast<int>(key & 7), 0, {}};
    if (field.wire == 0) broken_ = !Raw(field.value);
    if (field.wire == 1 || field.wire == 5) broken_ = !Fixed(field.wire == 1 ? 8 : 4, field.value);
    if (field.wire == 2) {
      std::uint64_t size = 0;
      broken_ = !Raw(size) || size > bytes_.size() - at_;
      if (!broken_) {
        field.bytes = bytes_.substr(at_, size);
        at_ += size;
      }
    }
    if (field.wire == 3 || field.wire == 4 || field.wire > 5) broken_ = true;
    return !broken_;
  }
  bool broken() const { return broken_; }
  std::size_t at() const { return at_; }

 private:
  bool Raw(std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) return false;
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool Fixed(std::size_t size, std::uint64_t& value) {
    if (size > bytes_.size() - at_) return false;
    for (std::size_t i = 0; i < size; ++i) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes_[at_ + i])) << (8 * i);
    }
    at_ += size;
    return true;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  bool broken_ = false;
};

}  // namespace troupe
