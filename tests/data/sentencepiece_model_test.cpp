#include "data/text/sentencepiece_model.hpp"

#include <cstdint>

#include <catch2/catch.hpp>

#include "data/text/tokenizer.hpp"

namespace troupe {
namespace {

using namespace std::string_literals;

std::string Varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7U) bytes += static_cast<char>((number & 0x7fU) | 0x80U);
  return bytes + static_cast<char>(number);
}

/// Fields of a protocol buffer, as one message holds them.
std::string ProtoField(int number, const std::string& bytes) {
  return Varint(static_cast<std::uint64_t>(number << 3 | 2)) + Varint(bytes.size()) + bytes;
}
std::string ProtoField(int number, std::uint64_t value) {
  return Varint(static_cast<std::uint64_t>(number << 3)) + Varint(value);
}

std::string Problem(const std::string& model) { return ProblemOf(std::as_bytes(std::span(model))); }

constexpr std::uint64_t kUserDefined = 4;
std::string UserDefined(const std::string& text) {
  return ProtoField(1, ProtoField(1, text) + ProtoField(3, kUserDefined));
}

const std::string kUnreadable = "could not read it as one";
const std::string kDamaged = "got one with a damaged normalization table: it is cut off";

TEST_CASE("fields that the checks do not know are passed over", "[data]") {
  CHECK(Problem("").empty());
  CHECK(Problem(ProtoField(2, "\xff\xff")).empty());
  CHECK(Problem(ProtoField(200, "\xff") + ProtoField(7, ~std::uint64_t{0})).empty());
  CHECK(Problem("\x0d"
                "1234"
                "\x09"
                "12345678")
            .empty());  // 32 and 64 bits, of fields 1
  CHECK(Problem(ProtoField(3, 7) + ProtoField(3, ProtoField(2, "") + ProtoField(1, "identity")))
            .empty());
}

TEST_CASE("bytes that are no protocol buffer are refused", "[data]") {
  for (const std::string& model : {
           "this is no model"s,
           "\x0a"s,                     // no length
           "\x0a\x02x"s,                // a length beyond the end
           ProtoField(1, "\x0a\x02x"),  // beyond the piece
           ProtoField(5, "\x12\x01"),   // beyond the denormalizer
           "\x0d"
           "123"s,                            // three bytes of four
           "\x0b\x0c"s,                       // a group
           ProtoField(3, "\x13\x14"),         // a group in the normalizer
           "\x02\x00"s,                       // field 0
           "\x08"s + std::string(9, '\xff'),  // a number that does not end
           "\x08"s + std::string(10, '\xff') + "\x01",
       }) {
    INFO(model);
    CHECK(Problem(model) == kUnreadable);
  }
}

TEST_CASE("a tag of more than 32 bits is no way around the checks", "[data]") {
  // The library keeps the lower 32 bits: field 3.
  const std::string tag = "\x9a\x80\x80\x80\x10";
  CHECK(Problem(tag + "\x02\x12\x00"s) == kUnreadable);
  // Zeros that make a tag longer do not change it.
  CHECK(Problem("\x9a\x80\x00\x05\x12\x03"
                "abc"s) == kDamaged);
}

TEST_CASE("both normalization tables are checked", "[data]") {
  CHECK(Problem(ProtoField(3, ProtoField(2, "abc"))) == kDamaged);
  CHECK(Problem(ProtoField(5, ProtoField(2, "abc"))) == kDamaged);
  CHECK(Problem(ProtoField(4, ProtoField(2, "abc"))).empty());
}

TEST_CASE("what the library would merge or overwrite is refused", "[data]") {
  CHECK(Problem(ProtoField(3, "") + ProtoField(5, "")).empty());
  CHECK(Problem(ProtoField(3, "") + ProtoField(3, "")) == "got one with a part twice");
  CHECK(Problem(ProtoField(5, "") + ProtoField(5, "")) == "got one with a part twice");
  CHECK(Problem(ProtoField(3, ProtoField(2, "") + ProtoField(2, ""))) ==
        "got one with two normalization tables in one place");
}

TEST_CASE("a piece has at most 4096 bytes", "[data]") {
  CHECK(Problem(ProtoField(1, ProtoField(1, std::string(4096, 'a')))).empty());
  CHECK(Problem(ProtoField(1, ProtoField(1, std::string(4097, 'a')))) ==
        "got one with a piece of more than 4096 bytes");
}

TEST_CASE("at most 64 user-defined pieces may match one text", "[data]") {
  const std::string kNested =
      "got one in which more than 64 user-defined pieces begin with one another";
  std::string model;
  std::string others;
  for (std::size_t i = 1; i <= 64; ++i) {
    model += UserDefined(std::string(i, 'a'));
    others += UserDefined(std::string(i, 'b') + 'c') +
              ProtoField(1, ProtoField(1, std::string(100 + i, 'a')));
  }
  CHECK(Problem(model + others + model).empty());
  CHECK(Problem(model + UserDefined(std::string(70, 'a'))) == kNested);
  CHECK(Problem(model + UserDefined(std::string(70, 'a') + "\0b"s)) == kNested);
  CHECK(Problem(model + UserDefined("a\0b"s)).empty());
  std::string without_a;
  for (std::size_t i = 2; i <= 64; ++i) without_a += UserDefined(std::string(i, 'a'));
  CHECK(Problem(without_a + UserDefined("a\0b"s) + UserDefined(std::string(70, 'a'))) == kNested);
  const std::uint64_t to_the_library = std::uint64_t{1} << 32U | kUserDefined;
  CHECK(Problem(model + ProtoField(1, ProtoField(1, std::string(70, 'a')) +
                                          ProtoField(3, to_the_library))) == kNested);
}

TEST_CASE("a damaged model is refused with its name before the library reads it", "[data]") {
  const std::string folder = "tests/fuzz/corpus/tokenizer/";
  CHECK_THROWS_WITH(MakeTokenizer("sentencepiece:" + folder + "found-charsmap", {"<image>"}),
                    folder +
                        "found-charsmap: expected a sentencepiece model, got one with a "
                        "damaged normalization table: a replacement is outside of it");
  for (const char* name : {"rules.model", "bpe.model", "unigram.model", "char.model"}) {
    CHECK_NOTHROW(MakeTokenizer("sentencepiece:" + folder + name, {"<image>"}));
  }
}

}  // namespace
}  // namespace troupe
