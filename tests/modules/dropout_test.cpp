#include "modules/dropout.hpp"

#include <cmath>
#include <cstdint>
#include <set>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

constexpr const char* kAdapter = "language.layers.0.self_attn.q_proj.lora_A.weight";

TEST_CASE("what dropout drops is the same for ever, as runs go on with other programs") {
  CHECK(DropoutRow(7, 3, 5, 11) == 0x751bc4a4U);
  CHECK(DropoutFeature(kAdapter, 19) == 0x861627b1U);
  CHECK(IsDropped(0x751bc4a4U, 0x861627b1U, 0.77));
  CHECK_FALSE(IsDropped(0x751bc4a4U, 0x861627b1U, 0.75));
}

TEST_CASE("every part of the decision has its say") {
  const std::set<std::uint32_t> rows = {DropoutRow(7, 3, 5, 11), DropoutRow(8, 3, 5, 11),
                                        DropoutRow(7, 4, 5, 11), DropoutRow(7, 3, 6, 11),
                                        DropoutRow(7, 3, 5, 12), DropoutRow(7, 3, 11, 5)};
  CHECK(rows.size() == 6);
  const std::set<std::uint32_t> features = {
      DropoutFeature(kAdapter, 19), DropoutFeature(kAdapter, 20), DropoutFeature("vision", 19)};
  CHECK(features.size() == 3);
}

TEST_CASE("dropout drops its share, in every row and of every feature alike") {
  constexpr std::int64_t kSize = 2000;
  const double share = GENERATE(0.0, 0.05, 0.5, 0.99);
  // Of n decisions within five standard deviations.
  const auto expect = [&](std::int64_t dropped, std::int64_t n) {
    const auto all = static_cast<double>(n);
    CHECK(std::abs(static_cast<double>(dropped) - share * all) <=
          5.0 * std::sqrt(all * share * (1.0 - share)));
  };
  std::int64_t total = 0;
  std::int64_t neighbours = 0;
  for (std::int64_t i = 0; i < kSize; ++i) {
    std::int64_t in_row = 0;
    std::int64_t of_feature = 0;
    bool before = false;
    for (std::int64_t j = 0; j < kSize; ++j) {
      const bool drops = IsDropped(DropoutRow(1, 0, 0, i), DropoutFeature(kAdapter, j), share);
      in_row += drops ? 1 : 0;
      neighbours += drops && before ? 1 : 0;
      before = drops;
      of_feature += IsDropped(DropoutRow(1, 0, 0, j), DropoutFeature(kAdapter, i), share) ? 1 : 0;
    }
    total += in_row;
    if (i % 100 == 0) {
      expect(in_row, kSize);
      expect(of_feature, kSize);
    }
  }
  expect(total, kSize * kSize);
  const double pairs = static_cast<double>(kSize * (kSize - 1)) * share * share;
  CHECK(std::abs(static_cast<double>(neighbours) - pairs) <= 5.0 * std::sqrt(3.0 * pairs));
}

}  // namespace
}  // namespace troupe
