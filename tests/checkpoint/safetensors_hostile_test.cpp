#include <cstring>
#include <stdexcept>

#include <catch2/catch.hpp>

#include "checkpoint/safetensors.hpp"
#include "tests/checkpoint/temporary_directory.hpp"

using Catch::Matchers::EndsWith;

namespace troupe {
namespace {

constexpr std::size_t kDataBytes = 8;

struct Hostile {
  std::string header;
  std::string text;  ///< how the error ends
};

std::string Entry(const std::string& fields) { return "{\"x\":{" + fields + "}}"; }

/// A float32 vector of two with one part replaced.
std::string With(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return Entry("\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets);
}

std::string Nested(std::size_t depth) {
  return "{\"x\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
}

std::string TwoVectors(const std::string& first, const std::string& second) {
  const std::string begin = R"({"dtype":"U8","shape":[4],"data_offsets":)";
  return "{\"x\":" + begin + first + "},\"y\":" + begin + second + "}}";
}

const std::vector<Hostile> kStructure = {
    {"", "header does not begin with '{'"},
    {" {}", "header does not begin with '{'"},
    {"[]", "header does not begin with '{'"},
    {"{", "header is not valid JSON at byte 2"},
    {"{}x", "header is not valid JSON at byte 3"},
    {std::string("{}\0 ]", 5), "header has a zero byte at byte 3"},
    {"{\"\xff\":{}}", "header is not valid JSON at byte 3"},
    {R"({"x":1})", "tensor \"x\" is not an object"},
    {R"({"x":null})", "tensor \"x\" is not an object"},
    {R"({"x":[]})", "tensor \"x\" is not an object"},
    {"{\"x\":[[]]}", "tensor \"x\" is not an object"},
    {Nested(3), "header is nested deeper than 3"},
    {Nested(100'000), "header is nested deeper than 3"},
    {R"({"x":{},"x":{}})", "header has the key \"x\" twice"},
    {R"({"x":{"dtype":"U8","dtype":"U8"}})", "header has the key \"dtype\" twice"},
    {R"({"__metadata__":{"a":"1","a":"2"}})", "header has the key \"a\" twice"},
    {R"({"__metadata__":{},"__metadata__":{}})", "header has the key \"__metadata__\" twice"},
    {R"({"__metadata__":[]})", "__metadata__ is not an object"},
    {R"({"__metadata__":{"a":1}})", "__metadata__ \"a\" is not a string"},
    {"{}", "tensors end at byte 0 of the data, but it has 8 bytes"},
};

const std::vector<Hostile> kEntries = {
    {Entry(R"("shape":[2],"data_offsets":[0,8])"), "tensor \"x\" has no dtype"},
    {Entry(R"("dtype":"F32","data_offsets":[0,8])"), "tensor \"x\" has no shape"},
    {Entry(R"("dtype":"F32","shape":[2])"), "tensor \"x\" has no data_offsets"},
    {Entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"z":0)"),
     "has keys other than dtype, shape and data_offsets"},
    {With("32", "[2]", "[0,8]"), "dtype is not a string"},
    {With("\"F33\"", "[2]", "[0,8]"), "has unknown dtype \"F33\""},
    {With("\"a\\nb\\u001b\"", "[2]", "[0,8]"), R"(has unknown dtype "a\nb\u001b")"},
    {With("\"F32\"", "2", "[0,8]"), "shape is not a list"},
    {With("\"F32\"", "[-2]", "[0,8]"),
     "shape holds something other than integers from 0 to 2^63 - 1"},
    {With("\"F32\"", "[2.0]", "[0,8]"),
     "shape holds something other than integers from 0 to 2^63 - 1"},
    {With("\"F32\"", "[true]", "[0,8]"),
     "shape holds something other than integers from 0 to 2^63 - 1"},
    {With("\"F32\"", "[18446744073709551617]", "[0,8]"),
     "shape holds something other than integers from 0 to 2^63 - 1"},
    {With("\"F32\"", "[9223372036854775808]", "[0,8]"),
     "shape holds something other than integers from 0 to 2^63 - 1"},
    {With("\"F32\"", "[4294967296,4294967296]", "[0,8]"),
     "has a shape of more than 2^63 - 1 bytes"},
    // 2^62 elements of 4 bytes are 0 bytes in 64 bits.
    {With("\"F32\"", "[4611686018427387904]", "[0,0]"), "has a shape of more than 2^63 - 1 bytes"},
    {With("\"F32\"", "[4294967296,4294967296,0]", "[0,0]"),
     "has a shape of more than 2^63 - 1 bytes"},
    {With("\"F32\"", "[0,4294967296,4294967296]", "[0,0]"),
     "has a shape of more than 2^63 - 1 bytes"},
    {With("\"F32\"", "[2]", "[-8,0]"),
     "data_offsets holds something other than integers from 0 to 2^63 - 1"},
    {With("\"F32\"", "[2]", "[0.0,8.0]"),
     "data_offsets holds something other than integers from 0 to 2^63 - 1"},
    {With("\"F32\"", "[1e999]", "[0,8]"), "header holds a number that is too large"},
    {With("\"F32\"", "[2]", "[0,8,8]"), "has 3 data_offsets, expected 2"},
    {With("\"F32\"", "[2]", "[8,0]"), "lies at bytes 8 to 0, expected 8 bytes"},
    {With("\"F32\"", "[3]", "[0,8]"), "lies at bytes 0 to 8, expected 12 bytes"},
    {With("\"F64\"", "[2]", "[0,8]"), "lies at bytes 0 to 8, expected 16 bytes"},
};

const std::vector<Hostile> kCover = {
    {With("\"F32\"", "[1]", "[0,4]"), "tensors end at byte 4 of the data, but it has 8 bytes"},
    {With("\"F32\"", "[4]", "[0,16]"), "tensors end at byte 16 of the data, but it has 8 bytes"},
    {With("\"U8\"", "[9223372036854775807]", "[0,9223372036854775807]"),
     "tensors end at byte 9223372036854775807 of the data, but it has 8 bytes"},
    {With("\"F32\"", "[1]", "[4,8]"),
     "tensor \"x\" begins at byte 4 of the data, expected 0: there is a gap"},
    {TwoVectors("[0,4]", "[0,4]"),
     "tensor \"y\" begins at byte 0 of the data, expected 4: there is an overlap"},
    {TwoVectors("[4,8]", "[2,6]"),
     "tensor \"y\" begins at byte 2 of the data, expected 0: there is a gap"},
    {TwoVectors("[0,4]", "[3,7]"),
     "tensor \"y\" begins at byte 3 of the data, expected 4: there is an overlap"},
    {TwoVectors("[0,4]", "[5,9]"),
     "tensor \"y\" begins at byte 5 of the data, expected 4: there is a gap"},
};

void CheckRefused(const std::string& path, const std::string& bytes, const std::string& text) {
  WriteBytes(path, bytes);
  CHECK_THROWS_WITH(SafetensorsReader(path), EndsWith(text));
  try {
    const SafetensorsReader reader(path);
  } catch (const std::runtime_error& error) {
    const std::string line = error.what();
    CHECK(line.rfind(path + ": ", 0) == 0);
    CHECK(line.find('\n') == std::string::npos);
    CHECK(line.size() < path.size() + 300);
  }
}

std::string WithLength(std::uint64_t length, const std::string& rest) {
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + rest;
}

void CheckAllRefused(const std::vector<Hostile>& all) {
  const TemporaryDirectory directory;
  for (const Hostile& hostile : all) {
    CAPTURE(hostile.header.substr(0, 100));
    CheckRefused(directory.File("a"),
                 WithLength(hostile.header.size(), hostile.header + std::string(kDataBytes, 'd')),
                 hostile.text);
  }
}

TEST_CASE("headers that are not a list of tensors are refused", "[checkpoint]") {
  CheckAllRefused(kStructure);
}

TEST_CASE("tensors that contradict themselves are refused", "[checkpoint]") {
  CheckAllRefused(kEntries);
}

TEST_CASE("tensors that do not cover the data exactly once are refused", "[checkpoint]") {
  CheckAllRefused(kCover);
}

TEST_CASE("a header length beyond the file or the format's bound is refused", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string path = directory.File("a");
  CheckRefused(path, "", "file has 0 bytes, expected at least 8");
  CheckRefused(path, "1234567", "file has 7 bytes, expected at least 8");
  CheckRefused(path, WithLength(3, "{}"), "header length is 3, expected at most 2");
  CheckRefused(path, WithLength(UINT64_MAX, "{}"),
               "header length is 18446744073709551615, expected at most 2");
  WriteBytes(path, WithLength(kMaxHeaderBytes + 1, "{}"));
  std::filesystem::resize_file(path, kMaxHeaderBytes + 100);  // sparse: nothing is written
  CHECK_THROWS_WITH(SafetensorsReader(path),
                    EndsWith("header length is 104857601, expected at most 104857600"));
}

TEST_CASE("a name of any length gives a short line", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string header = "{\"" + std::string(100'000, 'n') + "\":1}";
  CheckRefused(directory.File("a"), WithLength(header.size(), header),
               std::string(80, 'n') + "\"... is not an object");
}

TEST_CASE("whatever one byte is changed to, what is accepted stays within the data",
          "[checkpoint]") {
  const std::string header = With("\"F32\"", "[1,2]", "[0,8]");
  int num_accepted = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = header;
      changed[i] = static_cast<char>(byte);
      try {
        for (const TensorEntry& entry : ParseHeader(changed, kDataBytes).entries) {
          REQUIRE(entry.begin <= entry.end);
          REQUIRE(entry.end <= kDataBytes);
          ++num_accepted;
        }
      } catch (const std::runtime_error&) {
        continue;  // refusing is right too; any other exception fails the test
      }
    }
  }
  CHECK(num_accepted >= 256 / 2);  // at least the changes of the name
}

}  // namespace
}  // namespace troupe
