#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "data/rows/row_format.hpp"
#include "files/text_file.hpp"

namespace troupe {
namespace {

using nlohmann::json;

/// A row is {"conversations": [{"from": ...}]}. A much deeper file is not a data set.
constexpr int kMaxDepth = 16;

/// Bytes between two rows of a list.
constexpr std::int64_t kMostBetween = 1 << 20;

constexpr const char* kTooDeep = "nested too deeply";

/// Returns the parser's error text without the library's tag.
std::string ParserText(const json::exception& error) {
  const std::string text = error.what();
  const std::size_t tag_end = text.find("] ");
  return tag_end == std::string::npos ? text : text.substr(tag_end + 2);
}

std::ifstream OpenStream(const std::string& path) {
  if (const std::string reason = WhyNotOpened(path); !reason.empty()) {
    throw std::runtime_error(reason);
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw std::runtime_error(std::string("cannot be read: ") + std::strerror(errno));
  return stream;
}

/// The bytes of a stream, counted.
struct CountedBytes {
  std::streambuf* buffer = nullptr;
  std::int64_t count = 0;     ///< taken so far
  std::int64_t last_end = 0;  ///< of the last row
  std::string before = {};    ///< delivered before the stream, last byte first; not counted
};

/// Iterates over them. The parser takes one byte at a time, so `count` tells where it is.
class ByteIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  ByteIterator() = default;
  explicit ByteIterator(CountedBytes& bytes) : bytes_(&bytes) {}
  char operator*() const {
    if (!bytes_->before.empty()) return bytes_->before.back();
    return std::streambuf::traits_type::to_char_type(bytes_->buffer->sgetc());
  }
  ByteIterator& operator++() {
    if (!bytes_->before.empty()) {
      bytes_->before.pop_back();
      return *this;
    }
    bytes_->buffer->sbumpc();
    // The parser holds a string as long as it reads it.
    if (++bytes_->count - bytes_->last_end > kMaxRowBytes + kMostBetween) {
      throw std::runtime_error("expected rows of at most 1 GiB");
    }
    return *this;
  }
  bool operator==(const ByteIterator& other) const { return AtEnd() == other.AtEnd(); }

 private:
  bool AtEnd() const {
    return bytes_ == nullptr || (bytes_->before.empty() &&
                                 std::streambuf::traits_type::eq_int_type(
                                     bytes_->buffer->sgetc(), std::streambuf::traits_type::eof()));
  }

  CountedBytes* bytes_ = nullptr;
};

/// Finds where the rows of a list begin and end. A row that is not an object has the bytes between its
/// neighbours, commas included.
class ListScanner : public nlohmann::json_sax<json> {
 public:
  ListScanner(CountedBytes& bytes, const std::function<void(const RowSpan&)>& found)
      : bytes_(bytes), found_(found) {}

  bool null() override { return Value(); }
  bool boolean(bool) override { return Value(); }
  bool number_integer(number_integer_t) override { return Value(); }
  bool number_unsigned(number_unsigned_t) override { return Value(); }
  bool number_float(number_float_t, const string_t&) override { return Value(); }
  bool string(string_t&) override { return Value(); }
  bool binary(binary_t&) override { return Value(); }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return Start(/*list=*/false); }
  bool start_array(std::size_t) override { return Start(/*list=*/true); }
  bool end_object() override { return End(); }
  bool end_array() override { return End(); }
  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    throw std::runtime_error(ParserText(error));
  }

 private:
  bool Start(bool list) {
    if (depth_ == 0 && !list) RefuseWhole();
    if (depth_ == 1) begin_ = bytes_.count - 1;
    if (depth_ == 0) bytes_.last_end = bytes_.count;
    if (++depth_ > kMaxDepth) throw std::runtime_error(kTooDeep);
    return true;
  }
  bool End() {
    --depth_;
    if (depth_ == 1) Found(begin_);
    return true;
  }
  bool Value() {
    if (depth_ == 0) RefuseWhole();
    if (depth_ == 1) Found(bytes_.last_end);
    return true;
  }
  void Found(std::int64_t begin) {
    found_({begin, bytes_.count - begin, 0});
    bytes_.last_end = bytes_.count;
  }
  [[noreturn]] static void RefuseWhole() {
    throw std::runtime_error(
        "expected a list of rows, got something else; a file with one row a line is named "
        "*.jsonl");
  }

  CountedBytes& bytes_;
  const std::function<void(const RowSpan&)>& found_;
  int depth_ = 0;
  std::int64_t begin_ = 0;  ///< of the row
};

class JsonListFormat final : public RowFormat {
 public:
  void ScanAfter(const std::string& path, const std::optional<RowSpan>& last,
                 const std::function<void(const RowSpan&)>& found) const override {
    std::ifstream stream = OpenStream(path);
    CountedBytes bytes{stream.rdbuf()};
    constexpr std::string_view kCompressed =
        "\x1f\x28\xfd"
        "B";  // gzip, zstd, xz, bzip2
    if (!last && kCompressed.find(static_cast<char>(stream.peek())) != std::string_view::npos) {
      throw std::runtime_error("expected a JSON list, got a compressed file; unpack it first");
    }
    if (last) {
      stream.seekg(last->offset);
      // After a number the parser has read one byte more, so its row has no exact end.
      if (stream.peek() != '{') throw std::runtime_error("expected an object");
      bytes.count = bytes.last_end = last->offset + last->size;
      stream.seekg(bytes.count);
      bytes.before = "}{[";  // a list whose first row stands for all rows so far
    }
    const auto found_after = SkipFirst(last.has_value(), found);
    ListScanner scanner(bytes, found_after);
    json::sax_parse(ByteIterator(bytes), ByteIterator(), &scanner);
  }
  void Read(const SharedBytes& bytes, const RowOrigin&, const std::vector<RowField>& fields,
            LlavaRow& row) const override {
    // The parser has accepted the list: what is not an object has commas and white space around it.
    const auto no_gap = [](std::uint8_t byte) {
      return std::string_view(", \t\r\n").find(static_cast<char>(byte)) == std::string_view::npos;
    };
    const auto begin = std::find_if(bytes->begin(), bytes->end(), no_gap);
    auto end = bytes->end();
    while (end != begin && (!no_gap(end[-1]) || (end[-1] == ']' && *begin != '['))) --end;
    try {
      ReadRow(json::parse(begin, end), fields, row);
    } catch (const json::exception& error) {
      throw std::runtime_error(ParserText(error));
    }
  }
};

class JsonLinesFormat final : public RowFormat {
 public:
  void ScanAfter(const std::string& path, const std::optional<RowSpan>& last,
                 const std::function<void(const RowSpan&)>& found) const override {
    std::ifstream stream = OpenStream(path);
    RowSpan span;
    if (last) {
      span = {last->offset + last->size + 1, 0, last->line};
      stream.seekg(span.offset);
    }
    std::vector<char> block(std::size_t{1} << 16);
    bool is_blank = true;  // a line may be larger than memory
    const auto end_line = [&] {
      ++span.line;
      if (!std::exchange(is_blank, true)) found(span);
      span.offset += span.size + 1;
      span.size = 0;
    };
    do {
      stream.read(block.data(), std::ssize(block));
      std::string_view rest(block.data(), static_cast<std::size_t>(stream.gcount()));
      while (!rest.empty()) {
        const std::string_view part = rest.substr(0, rest.find('\n'));
        span.size += std::ssize(part);
        is_blank = is_blank && part.find_first_not_of(" \t\r") == std::string_view::npos;
        if (part.size() == rest.size()) break;
        rest.remove_prefix(part.size() + 1);
        end_line();
      }
    } while (stream);
    if (stream.bad()) throw std::runtime_error("cannot be read to its end");
    if (span.size > 0) end_line();
  }
  void Read(const SharedBytes& bytes, const RowOrigin&, const std::vector<RowField>& fields,
            LlavaRow& row) const override {
    const auto limit = [](int depth, json::parse_event_t /*event*/, json& /*value*/) {
      if (depth > kMaxDepth) throw std::runtime_error(kTooDeep);
      return true;
    };
    try {
      ReadRow(json::parse(bytes->begin(), bytes->end(), limit), fields, row);
    } catch (const json::parse_error& error) {
      throw std::runtime_error("not valid JSON at byte " + std::to_string(error.byte) +
                               " of its line");
    } catch (const json::exception& error) {  // a number that is too large
      throw std::runtime_error(ParserText(error));
    }
  }
};

}  // namespace

const RowFormat& JsonList() {
  static const JsonListFormat format;
  return format;
}

const RowFormat& JsonLines() {
  static const JsonLinesFormat format;
  return format;
}

}  // namespace troupe
