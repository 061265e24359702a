#include "data/order/pack_order.hpp"

#include <algorithm>
#include <random>
#include <set>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

std::vector<std::int64_t> RandomTokens(std::size_t count, std::int64_t most) {
  std::mt19937 random(3);
  std::vector<std::int64_t> tokens;
  for (std::size_t i = 0; i < count; ++i) {
    tokens.push_back(std::uniform_int_distribution<std::int64_t>(1, most)(random));
  }
  return tokens;
}

}  // namespace

TEST_CASE("packs hold every sample once, within their room, and are nearly full", "[data]") {
  const std::vector<std::int64_t> tokens = RandomTokens(4096, 60);
  const auto packs = MakePacks(tokens, 100);
  std::set<std::size_t> seen;
  std::int64_t all = 0;
  for (const auto& pack : packs) {
    std::int64_t in_pack = 0;
    for (const std::size_t sample : pack) {
      CHECK(seen.insert(sample).second);
      in_pack += tokens[sample];
    }
    CHECK(in_pack <= 100);
    CHECK(std::ranges::is_sorted(pack));
    all += in_pack;
  }
  CHECK(seen.size() == tokens.size());
  CHECK(std::ranges::is_sorted(packs));
  CHECK(static_cast<double>(all) / static_cast<double>(packs.size()) > 99.0);
}

TEST_CASE("a sample longer than the room of a pack is alone, and no samples are no packs",
          "[data]") {
  const std::vector<std::int64_t> tokens = {3, 200, 4};
  CHECK(MakePacks(tokens, 100) == std::vector<std::vector<std::size_t>>{{0, 2}, {1}});
  CHECK(MakePacks({}, 100).empty());
}

TEST_CASE("any pack of an order is found alone, in any sequence of questions", "[data]") {
  const std::vector<std::int64_t> tokens = RandomTokens(1000, 50);
  const auto tokens_at = [&](std::int64_t place) {
    return tokens[static_cast<std::size_t>(place) % tokens.size()];
  };
  const PackOrder order(64, 100, tokens_at);
  std::vector<std::vector<std::int64_t>> packs;
  for (std::int64_t pack = 0; pack < 900; ++pack) packs.push_back(order.PlacesIn(pack));
  const PackOrder other(64, 100, tokens_at);
  for (const std::int64_t pack : {899, 3, 450, 451, 0, 700}) {
    CHECK(other.PlacesIn(pack) == packs[static_cast<std::size_t>(pack)]);
  }
  std::set<std::int64_t> places;
  for (const auto& pack : packs) {
    CHECK_FALSE(pack.empty());
    CHECK(pack.front() / 100 == pack.back() / 100);  // of one window
    for (const std::int64_t place : pack) CHECK(places.insert(place).second);
  }
  CHECK(*places.begin() == 0);
}

TEST_CASE("a pack is found from its window, without those before it", "[data]") {
  const std::vector<std::int64_t> tokens = RandomTokens(1000, 50);
  std::int64_t first_read = 1'000'000;
  const auto tokens_at = [&](std::int64_t place) {
    first_read = std::min(first_read, place);
    return tokens[static_cast<std::size_t>(place) % tokens.size()];
  };
  const PackOrder whole(64, 100, tokens_at);
  const std::vector<std::int64_t> later = whole.PlacesIn(850);
  const PackWindow window = whole.WindowOf(850);
  CHECK(window.number == later.front() / 100);
  CHECK(whole.WindowOf(window.first_pack) == window);
  CHECK(whole.WindowOf(window.first_pack - 1).number == window.number - 1);
  PackOrder resumed(64, 100, tokens_at);
  resumed.BeginAt(window);
  first_read = 1'000'000;
  CHECK(resumed.PlacesIn(850) == later);
  CHECK(resumed.WindowOf(850) == window);
  CHECK(first_read == 100 * window.number);
  CHECK(resumed.PlacesIn(3) == whole.PlacesIn(3));  // a job may go back to an older checkpoint
  CHECK(resumed.PlacesIn(850) == later);
}

TEST_CASE("the packs of a large set are estimated from its first windows", "[data]") {
  const std::vector<std::int64_t> tokens = RandomTokens(1'000'000, 50);
  std::int64_t reads = 0;
  const auto tokens_at = [&](std::int64_t place) {
    ++reads;
    return tokens[static_cast<std::size_t>(place)];
  };
  const std::int64_t estimate = PackOrder(64, 100, tokens_at).NumPacks(1'000'000);
  CHECK(reads == 262'200);
  const std::int64_t exact = PackOrder(64, 100, tokens_at, 1'000'000).NumPacks(1'000'000);
  CHECK(estimate == Approx(static_cast<double>(exact)).epsilon(0.002));
}

TEST_CASE("a finite order ends with its last window, which may be short", "[data]") {
  const PackOrder order(
      10, 4, [](std::int64_t) { return 5; }, 7);
  CHECK(order.PlacesIn(0) == std::vector<std::int64_t>{0, 1});
  CHECK(order.PlacesIn(3) == std::vector<std::int64_t>{6});
  CHECK(order.PlacesIn(4).empty());
  CHECK(order.NumPacks(7) == 4);
  CHECK(order.NumPacks(4) == 2);
}

}  // namespace troupe
