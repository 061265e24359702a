#include "checkpoint/stored_type.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

template <class Loaded, class Stored>
std::vector<Loaded> Widened(StoredType type, const std::vector<Stored>& stored) {
  // One byte off: tensors of foreign files may lie anywhere.
  std::vector<std::byte> bytes(1);
  const auto content = std::as_bytes(std::span(stored));
  bytes.insert(bytes.end(), content.begin(), content.end());
  std::vector<Loaded> loaded(stored.size());
  Widen(type, bytes.data() + 1, stored.size(), reinterpret_cast<std::byte*>(loaded.data()));
  return loaded;
}

std::vector<std::uint16_t> AllPatterns() {
  std::vector<std::uint16_t> patterns;
  for (std::uint32_t p = 0; p <= 0xFFFF; ++p) patterns.push_back(static_cast<std::uint16_t>(p));
  return patterns;
}

/// What a float of `fraction_bits` and the given bias means, from the definition.
double Meaning(std::uint16_t pattern, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (pattern >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = pattern & ((1 << fraction_bits) - 1);
  const double sign = (pattern & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  const int hidden = exponent == 0 ? 0 : 1 << fraction_bits;
  return sign * std::ldexp(hidden + fraction, std::max(exponent, 1) - bias - fraction_bits);
}

void CheckAllPatterns(StoredType type, int exponent_bits, int fraction_bits) {
  const std::vector<std::uint16_t> patterns = AllPatterns();
  const std::vector<float> loaded = Widened<float>(type, patterns);
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const double expected = Meaning(patterns[i], exponent_bits, fraction_bits);
    const bool equal = std::isnan(expected) ? std::isnan(loaded[i]) : loaded[i] == expected;
    if (!equal || std::signbit(loaded[i]) != ((patterns[i] & 0x8000) != 0)) {
      FAIL("pattern " << patterns[i] << " became " << loaded[i] << ", expected " << expected);
    }
  }
}

TEST_CASE("every half-precision pattern widens to its exact value", "[checkpoint]") {
  CheckAllPatterns(StoredType::kFloat16, 5, 10);
}

TEST_CASE("every bfloat16 pattern widens to its exact value", "[checkpoint]") {
  CheckAllPatterns(StoredType::kBFloat16, 8, 7);
}

TEST_CASE("small integers keep their sign", "[checkpoint]") {
  CHECK(Widened<std::int32_t>(StoredType::kInt16, std::vector<std::int16_t>{-32768, -1, 7}) ==
        std::vector<std::int32_t>{-32768, -1, 7});
  CHECK(Widened<std::int32_t>(StoredType::kInt8, std::vector<std::int8_t>{-128, -1, 7}) ==
        std::vector<std::int32_t>{-128, -1, 7});
}

TEST_CASE("types that a buffer has are copied", "[checkpoint]") {
  const std::vector<double> doubles = {0.1, -2.5e300};
  CHECK(Widened<double>(StoredType::kFloat64, doubles) == doubles);
  const std::vector<std::uint8_t> bools = {0, 1, 1};
  CHECK(Widened<std::uint8_t>(StoredType::kBool, bools) == bools);
}

TEST_CASE("types are written and parsed by the format's words", "[checkpoint]") {
  for (const char* word : {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL"}) {
    const auto type = ParseStoredType(word);
    REQUIRE(type);
    CHECK(ToString(*type) == word);
    CHECK(SizeOf(*type) <= SizeOf(LoadedTypeOf(*type)));
  }
  CHECK_FALSE(ParseStoredType("f32"));
  CHECK_FALSE(ParseStoredType(""));
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kInt32, DType::kUInt8}) {
    CHECK(LoadedTypeOf(StoredTypeOf(dtype)) == dtype);
    CHECK(SizeOf(StoredTypeOf(dtype)) == SizeOf(dtype));
  }
}

}  // namespace
}  // namespace troupe
