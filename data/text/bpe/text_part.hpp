// A text that was derived from another one, and the bytes of the original that each of its bytes
// stands for. Most texts are used as they came: those need no table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::bpe {

/// Bytes [begin, end) of the original text; begin == end: an inserted character.
struct ByteRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// A view of a text. The owner of the text, and of the table, outlives it.
struct TextPart {
  std::string_view text;
  const ByteRange* origin = nullptr;  ///< one per byte of `text`; null: see `base`
  std::uint32_t base = 0;             ///< byte i of `text` is byte base + i of the original

  std::uint32_t BeginOf(std::size_t byte) const {
    return origin != nullptr ? origin[byte].begin : base + static_cast<std::uint32_t>(byte);
  }
  std::uint32_t EndOf(std::size_t byte) const {
    return origin != nullptr ? origin[byte].end : base + static_cast<std::uint32_t>(byte) + 1;
  }
  TextPart Sub(std::size_t begin, std::size_t end) const {
    return {text.substr(begin, end - begin), origin != nullptr ? origin + begin : nullptr,
            base + static_cast<std::uint32_t>(begin)};
  }
};

/// The most bytes that a text of `bytes` may become. Published files triple a text at most, and NFKC
/// makes 33 bytes of 3; a file from a stranger may double it in each of many steps.
constexpr std::size_t MostBytesOf(std::size_t bytes) { return 32 * bytes + 4096; }

/// A changed text with its table.
class AlignedText {
 public:
  TextPart part() const { return {text_, origin_.data(), 0}; }
  std::size_t size() const { return text_.size(); }

  void Clear() {
    text_.clear();
    origin_.clear();
  }
  void Reserve(std::size_t bytes) {
    text_.reserve(bytes);
    origin_.reserve(bytes);
  }
  /// Appends bytes [begin, end) of `source` unchanged.
  void Keep(const TextPart& source, std::size_t begin, std::size_t end) {
    text_.append(source.text, begin, end - begin);
    for (std::size_t byte = begin; byte < end; ++byte) {
      origin_.push_back({source.BeginOf(byte), source.EndOf(byte)});
    }
  }
  /// Appends `text`, which stands for `range` of the original.
  void Append(std::string_view text, ByteRange range) {
    text_.append(text);
    origin_.insert(origin_.end(), text.size(), range);
  }

 private:
  std::string text_;
  std::vector<ByteRange> origin_;
};

}  // namespace troupe::bpe
