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

template <class To, class From>
To Converted(StoredType from, From value, StoredType to) {
  To result;
  ConvertFloats(from, reinterpret_cast<const std::byte*>(&value), 1, to,
                reinterpret_cast<std::byte*>(&result));
  return result;
}

TEST_CASE("every half and every bfloat16 survives a wider type, and a NaN stays one") {
  for (const StoredType narrow : {StoredType::kFloat16, StoredType::kBFloat16}) {
    for (std::uint32_t i = 0; i <= 0xFFFF; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      const auto wide = Converted<float>(narrow, bits, StoredType::kFloat32);
      const auto wider = Converted<double>(narrow, bits, StoredType::kFloat64);
      const auto back = Converted<std::uint16_t>(StoredType::kFloat32, wide, narrow);
      const auto far_back = Converted<std::uint16_t>(StoredType::kFloat64, wider, narrow);
      if (std::isnan(wide)) {
        const auto again = Converted<float>(narrow, back, StoredType::kFloat32);
        if (!std::isnan(again) || !std::isnan(wider)) FAIL("bits " << bits);
      } else if (back != bits || far_back != bits || wider != static_cast<double>(wide)) {
        FAIL("bits " << bits << " became " << back << " and " << far_back);
      }
    }
  }
}

TEST_CASE("halves are rounded to the nearest, ties to even") {
  const auto half = [](float value) {
    return Converted<float>(
        StoredType::kFloat16,
        Converted<std::uint16_t>(StoredType::kFloat32, value, StoredType::kFloat16),
        StoredType::kFloat32);
  };
  CHECK(half(1.0F + 0x1p-11F) == 1.0F);              // a tie
  CHECK(half(1.0F + 0x1.8p-10F) == 1.0F + 0x1p-9F);  // a tie, up
  CHECK(half(1.0F + 0x1.01p-11F) == 1.0F + 0x1p-10F);
  CHECK(half(65519.0F) == 65504.0F);
  CHECK(std::isinf(half(65520.0F)));
  CHECK(half(-70000.0F) == -std::numeric_limits<float>::infinity());
  CHECK(half(0x1p-25F) == 0.0F);  // a tie between 0 and the smallest
  CHECK(half(0x1.8p-25F) == 0x1p-24F);
  CHECK(half(-0x1.4p-23F) == -0x1p-23F);
  CHECK(std::signbit(half(-1e-12F)));
}

TEST_CASE("floating types are converted in bulk, and others are refused") {
  const std::vector<double> exact = {0.1, -3.0, 1e300};
  std::vector<float> rounded(3);
  ConvertFloats(StoredType::kFloat64, reinterpret_cast<const std::byte*>(exact.data()), 3,
                StoredType::kFloat32, reinterpret_cast<std::byte*>(rounded.data()));
  CHECK(rounded == std::vector<float>{0.1F, -3.0F, std::numeric_limits<float>::infinity()});
  CHECK_THROWS_AS(ConvertFloats(StoredType::kInt64, nullptr, 0, StoredType::kFloat32, nullptr),
                  std::invalid_argument);
  CHECK_THROWS_AS(ConvertFloats(StoredType::kFloat32, nullptr, 0, StoredType::kBool, nullptr),
                  std::invalid_argument);
}

}  // namespace
}  // namespace troupe
