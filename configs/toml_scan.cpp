#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "configs/toml_value.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

constexpr int kMaxDots = 1000;

struct Character {
  std::uint32_t code = 0;
  std::size_t num_bytes = 0;  ///< 0 if the bytes are not UTF-8
};

/// Returns the first character of a non-empty text.
Character FirstOf(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const std::size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc0 || byte(0) > 0xf7 || text.size() < size) return {};
  std::uint32_t code = byte(0) & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {};
    code = code << 6U | (byte(i) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < kSmallest.at(size) || code > 0x10ffff || surrogate ? Character{}
                                                                   : Character{code, size};
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
  }

  std::optional<ConfigError> Find() {
    while (More()) {
      if (Next() == '"' || Next() == '\'') {
        String(Next());
      } else if (Next() == '#') {
        while (More() && Next() != '\n') Advance();
      } else {
        Outside();
      }
    }
    return std::move(fault_);
  }

 private:
  bool More() const { return !fault_ && !rest_.empty(); }
  char Next() const { return rest_.front(); }
  bool NextIsAscii() const { return static_cast<unsigned char>(Next()) < 0x80; }

  /// Advances by one character. Bytes that are not UTF-8 are a fault.
  void Advance() {
    const Character next = FirstOf(rest_);
    if (next.num_bytes == 0) {
      return Refuse("expected UTF-8, got the byte " +
                    Formatted("0x%02X", static_cast<unsigned char>(Next())));
    }
    ++column_;
    if (next.code == '\n') {
      ++line_;
      column_ = 1;
    }
    rest_.remove_prefix(next.num_bytes);
  }

  void Refuse(std::string text) { fault_ = ConfigError{{"", line_, column_}, std::move(text)}; }

  /// Reports "EXPECTED, got U+0489".
  void RefuseNext(const std::string& expected) {
    const Character next = FirstOf(rest_);
    if (next.num_bytes == 0) return Advance();
    Refuse(expected + ", got " + Formatted("U+%04X", next.code));
  }

  void Outside() {
    const char c = Next();
    const bool control = NextIsAscii() && (c < 0x20 || c == 0x7f);
    if (!NextIsAscii() || (control && c != '\t' && c != '\n' && c != '\r')) {
      return RefuseNext("expected printable ASCII outside \"strings\" and # comments");
    }
    CountDots(c);
    if (!fault_) Advance();
  }

  /// Counts dots from the outermost key. Inside brackets the count starts from the enclosing key's.
  void CountDots(char c) {
    if (c == '[' || c == '{') outer_dots_.push_back(dots_);
    if (c == ',' || c == '\n') dots_ = outer_dots_.empty() ? 0 : outer_dots_.back();
    if ((c == ']' || c == '}') && !outer_dots_.empty()) {
      dots_ = outer_dots_.back();
      outer_dots_.pop_back();
    }
    if (c == '.' && ++dots_ > kMaxDots) {
      Refuse("expected a key of a few parts, got one of more than " + std::to_string(kMaxDots));
    }
  }

  /// Skips a string. The parser reports a string that is not closed.
  void String(char quote) {
    const std::string three(3, quote);
    const bool multi_line = rest_.starts_with(three);
    for (int i = multi_line ? 3 : 1; i > 0; --i) Advance();
    while (More() && (multi_line || Next() != '\n')) {
      if (multi_line ? rest_.starts_with(three) : Next() == quote) {
        // A multi-line string may end in up to two quotes before the closing three.
        for (int i = multi_line ? 5 : 1; i > 0 && More() && Next() == quote; --i) Advance();
        return;
      }
      if (Next() == '\\' && quote == '"') {
        Escape(multi_line);
      } else {
        Advance();
      }
    }
  }

  void Escape(bool multi_line) {
    constexpr std::string_view kWhiteSpace = " \t\r\n";
    Advance();
    const bool folds = multi_line && More() && kWhiteSpace.find(Next()) != std::string_view::npos;
    while (folds && More() && kWhiteSpace.find(Next()) != std::string_view::npos) Advance();
    if (multi_line && More() && !NextIsAscii()) {
      return RefuseNext("expected ASCII after a backslash in a multi-line string");
    }
    if (!folds && More() && Next() != '\n') Advance();
  }

  std::string_view rest_;
  int line_ = 1;
  int column_ = 1;
  int dots_ = 0;                 ///< in the current key and the keys around it
  std::vector<int> outer_dots_;  ///< by open bracket: the dots before it
  std::optional<ConfigError> fault_;
};

}  // namespace

std::optional<ConfigError> FindTomlFault(std::string_view text) { return Scanner(text).Find(); }

}  // namespace troupe
