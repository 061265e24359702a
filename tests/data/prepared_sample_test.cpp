#include "data/prepared_sample.hpp"

#include <cstring>

#include <catch2/catch.hpp>

#include "layout/mix_bits.hpp"
#include "tests/data/two_encoders.hpp"

namespace troupe {
namespace {

constexpr std::size_t kItemBytes = 12;

PreparedSample Example(const std::vector<std::uint8_t>& pixels) {
  PreparedSample prepared;
  prepared.id = "r\n7";
  prepared.sample = {.tokens = {1, 250, 3, 4},
                     .labels = {250, 3, kNoLabel, kNoLabel},
                     .content = {0, 1, 0, 0},
                     .positions = {{1, -1, 2}, {}},
                     .newlines = {{3}, {}},
                     .lengths = {3, 0},
                     .num_uncut_tokens = 9};
  prepared.items = {{{1, {pixels.data(), kItemBytes}}, {2, {}}}, {}};
  prepared.replaced = {{false, 3, 12, "a.png", "a.png: no image"}};
  return prepared;
}

std::vector<std::uint8_t> Pixels() {
  std::vector<std::uint8_t> pixels;
  for (std::size_t i = 0; i < kItemBytes; ++i) pixels.push_back(static_cast<std::uint8_t>(17 * i));
  return pixels;
}

}  // namespace

TEST_CASE("a prepared sample comes back as it was", "[data]") {
  const std::vector<std::uint8_t> pixels = Pixels();
  const PreparedSample sent = Example(pixels);
  const PreparedSample got = Decode(Encode(sent), FormatOfTwoEncoders(), 1);
  CHECK(got.id == sent.id);
  CHECK(got.sample.tokens == sent.sample.tokens);
  CHECK(got.sample.labels == sent.sample.labels);
  CHECK(got.sample.content == sent.sample.content);
  CHECK(got.sample.positions == sent.sample.positions);
  CHECK(got.sample.newlines == sent.sample.newlines);
  CHECK(got.sample.lengths == sent.sample.lengths);
  CHECK(got.sample.num_uncut_tokens == 9);
  CHECK(got.replaced == sent.replaced);
  REQUIRE(got.items.size() == 2);
  REQUIRE(got.items[0].size() == 2);
  CHECK(std::vector(got.items[0][0].bytes.begin(), got.items[0][0].bytes.end()) == pixels);
  CHECK(got.items[0][1].length == 2);
  CHECK(got.items[1].empty());
  // The squares of the first item, then zeros for the second.
  const FieldItems items = Finished(got.items[0], FormatOfTwoEncoders().items[0]);
  CHECK(items.lengths == std::vector<std::int64_t>{1, 2});
  CHECK(items.values.shape() == Shape{3, 3, 2, 2});
  std::vector<float> expected(3 * kItemBytes, 0.0F);
  FormatOfTwoEncoders().items[0].preprocessor->Finish(pixels,
                                                      std::span(expected).first(kItemBytes));
  CHECK(std::equal(expected.begin(), expected.end(), items.values.as<float>()));
}

TEST_CASE("bytes that are no prepared sample are refused", "[data]") {
  const std::vector<std::uint8_t> pixels = Pixels();
  const Buffer whole = Encode(Example(pixels));
  const auto size = static_cast<std::int64_t>(whole.num_bytes());
  for (std::int64_t end = 0; end < size; ++end) {
    CHECK_THROWS_AS(Decode(whole.Rows(0, end), FormatOfTwoEncoders(), 1), std::runtime_error);
  }
  const Buffer longer = Buffer::Zeros({size + 1}, DType::kUInt8);
  std::memcpy(longer.data(), whole.data(), whole.num_bytes());
  CHECK_THROWS_AS(Decode(longer, FormatOfTwoEncoders(), 1), std::runtime_error);
  const auto refuses = [&](PreparedSample sample) {
    CHECK_THROWS_AS(Decode(Encode(sample), FormatOfTwoEncoders(), 1), std::runtime_error);
  };
  PreparedSample bad = Example(pixels);
  bad.sample.positions[0][1] = 4;
  refuses(bad);
  bad = Example(pixels);
  bad.sample.newlines[0][0] = -2;
  refuses(bad);
  bad = Example(pixels);
  bad.sample.labels.pop_back();
  refuses(bad);
  bad = Example(pixels);
  bad.items[0][1].length = 1;  // less than its lengths say
  refuses(bad);
  bad = Example(pixels);
  bad.items[0][1].length = std::int64_t{1} << 62;
  refuses(bad);
  bad = Example(pixels);
  bad.items[0][0].bytes = bad.items[0][0].bytes.first(kItemBytes - 1);
  refuses(bad);
  bad = Example(pixels);
  bad.items.pop_back();
  refuses(bad);
  bad = Example(pixels);
  bad.items[0].clear();  // as a language model has it prepared
  refuses(bad);
  CHECK_NOTHROW(Decode(Encode(bad), FormatOfTwoEncoders(), 0));
  CHECK_THROWS_AS(Decode(whole, FormatOfTwoEncoders(), 0), std::runtime_error);
  bad = Example(pixels);
  bad.sample.tokens[1] = 300;
  refuses(bad);
  bad = Example(pixels);
  bad.sample.labels[1] = -1;
  refuses(bad);
  int refused = 0;
  // No change of a byte does more than change or refuse the sample.
  for (std::int64_t at = 0; at < size; ++at) {
    const Buffer changed = Buffer::Allocate({size}, DType::kUInt8);
    std::memcpy(changed.data(), whole.data(), whole.num_bytes());
    changed.as<std::uint8_t>()[at] ^= static_cast<std::uint8_t>(1 + MixBits(at) % 255);
    try {
      const PreparedSample other = Decode(changed, FormatOfTwoEncoders(), 1);
      const FieldItems items = Finished(other.items[0], FormatOfTwoEncoders().items[0]);
      CHECK(items.values.shape()[0] == other.sample.lengths[0]);
    } catch (const std::runtime_error&) {
      ++refused;
    }
  }
  CHECK(refused > size / 4);
}

}  // namespace troupe
