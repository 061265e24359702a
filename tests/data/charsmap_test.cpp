#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

#include "data/text/sentencepiece_model.hpp"

namespace troupe {
namespace {

/// A charsmap, unit by unit. The root's next bytes are at base 1.
struct Charsmap {
  static constexpr std::uint32_t kNone = 0x80000000;  ///< a unit that no byte reaches
  std::vector<std::uint32_t> units = std::vector<std::uint32_t>(256, kNone);
  std::string strings = std::string("b\0", 2);

  Charsmap() { units[0] = 1 << 10; }

  /// From `base` by `byte` to the base `next`, which holds the value of a leaf.
  void Step(std::uint32_t base, unsigned char byte, std::uint32_t next, bool leaf) {
    const std::uint32_t index = base ^ byte;
    units[index] = byte | (leaf ? 1U << 8 : 0) | (index ^ next) << 10;
  }
  void Leaf(std::uint32_t base, std::uint32_t value) { units[base] = kNone | value; }

  std::string Bytes() const {
    std::string bytes;
    const auto word = [&](std::uint32_t number) {
      for (int i = 0; i < 4; ++i) bytes += static_cast<char>(number >> 8 * i & 0xff);
    };
    word(static_cast<std::uint32_t>(units.size() * 4));
    for (const std::uint32_t unit : units) word(unit);
    return bytes + strings;
  }
};

std::string ProblemOfBytes(const std::string& bytes) {
  return CharsmapProblem(std::as_bytes(std::span(bytes)));
}

std::string ProblemOf(const Charsmap& charsmap) { return ProblemOfBytes(charsmap.Bytes()); }

/// "a" to "b".
Charsmap Small() {
  Charsmap charsmap;
  charsmap.Step(1, 'a', 2, true);
  charsmap.Leaf(2, 0);
  return charsmap;
}

/// "a", "aa", ... up to `num_keys` times "a".
Charsmap Nested(std::uint32_t num_keys) {
  Charsmap charsmap;
  charsmap.units.resize(256 * (num_keys + 1), Charsmap::kNone);
  for (std::uint32_t i = 0; i < num_keys; ++i) {
    charsmap.Step(256 * i + 1, 'a', 256 * (i + 1) + 1, true);
    charsmap.Leaf(256 * (i + 1) + 1, 0);
  }
  return charsmap;
}

TEST_CASE("a charsmap whose lookups stay inside of it is accepted", "[data]") {
  CHECK(ProblemOf(Charsmap()).empty());
  CHECK(ProblemOf(Small()).empty());
  Charsmap shared = Small();  // "ax", "cx": the trie of x is there once
  shared.Step(1, 'c', 3, false);
  shared.Step(2, 'x', 4, true);
  shared.Step(3, 'x', 4, true);
  shared.Leaf(4, 1);
  CHECK(ProblemOf(shared).empty());
}

TEST_CASE("units that no text reaches may hold anything", "[data]") {
  Charsmap charsmap = Small();
  charsmap.units[200] = 0xffffffff;
  charsmap.units[201] = 'a' | 0xfffffU << 10;
  CHECK(ProblemOf(charsmap).empty());
}

TEST_CASE("a charsmap without a whole trie and ended strings is refused", "[data]") {
  CHECK(ProblemOfBytes("abc") == "it is cut off");
  CHECK(ProblemOfBytes(std::string("\0\0\0\0\0", 5)) == "its trie has no whole units");
  CHECK(ProblemOfBytes(std::string("\3\0\0\0aaaa\0", 9)) == "its trie has no whole units");
  CHECK(ProblemOfBytes(std::string("\xff\xff\xff\xff\0\0\0\0\0", 9)) ==
        "its trie has no whole units");
  CHECK(ProblemOfBytes(std::string("\4\0\0\0\0\0\0\0", 8)) == "its trie is larger than the table");
  Charsmap charsmap = Small();
  charsmap.strings = "b";
  CHECK(ProblemOf(charsmap) == "its last replacement does not end");
}

TEST_CASE("a step out of the trie is found", "[data]") {
  Charsmap charsmap = Small();
  charsmap.Step(2, 'z', 256, false);
  CHECK(ProblemOf(charsmap) == "a step leads out of its trie");
  charsmap.units.resize(512, Charsmap::kNone);
  CHECK(ProblemOf(charsmap).empty());
  charsmap.units.resize(511);  // some bytes after "az" would lead out
  CHECK(ProblemOf(charsmap) == "a step leads out of its trie");
  charsmap = Small();
  charsmap.units[2 ^ 'z'] = 'z' | 1U << 9 | 1U << 10;  // an offset of 256: bit 9 counts in blocks
  CHECK(ProblemOf(charsmap) == "a step leads out of its trie");
  charsmap = Charsmap();
  charsmap.units[0] = 256U << 10;
  CHECK(ProblemOf(charsmap) == "a step leads out of its trie");
}

TEST_CASE("a replacement outside of the table is found", "[data]") {
  Charsmap charsmap = Small();
  charsmap.Leaf(2, 1);  // the empty text
  CHECK(ProblemOf(charsmap).empty());
  charsmap.Leaf(2, 2);
  CHECK(ProblemOf(charsmap) == "a replacement is outside of it");
  charsmap.Leaf(2, 0x7fffffff);
  CHECK(ProblemOf(charsmap) == "a replacement is outside of it");
}

TEST_CASE("a loop is found", "[data]") {
  Charsmap charsmap = Small();
  charsmap.Step(2, 'z', 3, false);
  charsmap.Step(3, 'y', 2, false);
  CHECK(ProblemOf(charsmap) == "its trie has a loop");
}

TEST_CASE("at most 32 keys may match one text", "[data]") {
  CHECK(ProblemOf(Nested(32)).empty());
  CHECK(ProblemOf(Nested(33)) == "too many of its keys begin with one another");
}

TEST_CASE("a replacement has at most 1000 bytes", "[data]") {
  Charsmap charsmap = Small();
  charsmap.strings = std::string(1000, 'b') + '\0';
  CHECK(ProblemOf(charsmap).empty());
  charsmap.strings = std::string(1001, 'b') + '\0';
  CHECK(ProblemOf(charsmap) == "a replacement is longer than 1000 bytes");
}

}  // namespace
}  // namespace troupe
