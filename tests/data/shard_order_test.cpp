#include "data/order/shard_order.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include <catch2/catch.hpp>

#include "data/order/sample_order.hpp"

namespace troupe {
namespace {

TEST_CASE("each epoch has every row of every shard once, in another order", "[data]") {
  const std::vector<std::int64_t> sizes = {5, 0, 17, 1, 30, 8, 2};
  const std::int64_t rows = std::reduce(sizes.begin(), sizes.end());
  for (const std::int64_t window : {1, 2, 3, 7, 100}) {
    const ShardOrder order(11, sizes, window);
    REQUIRE(order.num_rows() == rows);
    std::vector<std::int64_t> before;
    for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
      std::vector<std::int64_t> drawn;
      for (std::int64_t i = 0; i < rows; ++i) drawn.push_back(order.RowAt(epoch * rows + i));
      CHECK(drawn != before);
      before = drawn;
      std::ranges::sort(drawn);
      for (std::int64_t i = 0; i < rows; ++i) REQUIRE(drawn[static_cast<std::size_t>(i)] == i);
    }
  }
}

TEST_CASE("rows that follow each other come from the shards of one window", "[data]") {
  constexpr std::int64_t kShards = 40;
  constexpr std::int64_t kRows = 25;
  constexpr std::int64_t kWindow = 4;
  const ShardOrder order(3, std::vector<std::int64_t>(kShards, kRows), kWindow);
  std::set<std::int64_t> seen;
  for (std::int64_t window = 0; window < kShards / kWindow; ++window) {
    std::set<std::int64_t> shards;
    std::int64_t changes = 0;
    std::int64_t last = -1;
    for (std::int64_t i = 0; i < kRows * kWindow; ++i) {
      const std::int64_t shard = order.RowAt(window * kRows * kWindow + i) / kRows;
      shards.insert(shard);
      if (shard != last) ++changes;
      last = shard;
    }
    CHECK(std::ssize(shards) == kWindow);
    CHECK(changes > kRows);  // they are mixed
    for (const std::int64_t shard : shards) CHECK(seen.insert(shard).second);
  }
}

TEST_CASE("one shard has the order of a list", "[data]") {
  const ShardOrder order(5, {13}, 8);
  for (std::int64_t place = 0; place < 100; ++place) {
    CHECK(order.RowAt(place) == SampleOrder(5, place / 13, place % 13, 13));
  }
  CHECK_THROWS_AS(ShardOrder(5, {0, 0}, 1), std::invalid_argument);
  CHECK_THROWS_AS(ShardOrder(5, {1}, 0), std::invalid_argument);
}

}  // namespace
}  // namespace troupe
