#include "data/order/sample_order.hpp"

#include <cstdlib>
#include <limits>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

std::vector<std::int64_t> Epoch(std::uint64_t seed, std::int64_t epoch, std::int64_t size) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < size; ++i) rows.push_back(SampleOrder(seed, epoch, i, size));
  return rows;
}

TEST_CASE("every row is drawn exactly once per epoch, whatever the size", "[data]") {
  for (std::int64_t size = 1; size <= 2000; ++size) {
    std::vector<bool> seen(static_cast<std::size_t>(size));
    bool once = true;
    for (const std::int64_t row : Epoch(7, size % 5, size)) {
      once = once && row >= 0 && row < size && !seen[static_cast<std::size_t>(row)];
      if (once) seen[static_cast<std::size_t>(row)] = true;
    }
    INFO("size " << size);
    REQUIRE(once);
  }
}

TEST_CASE("the order is a function of seed and epoch, and each changes it", "[data]") {
  const auto order = Epoch(7, 0, 500);
  CHECK(order == Epoch(7, 0, 500));
  CHECK(order != Epoch(7, 1, 500));
  CHECK(order != Epoch(8, 0, 500));
  CHECK(Epoch(7, 1, 500) != Epoch(8, 0, 500));
}

TEST_CASE("neighbours in the order are not neighbours in the file", "[data]") {
  const auto order = Epoch(3, 2, 1000);
  int close = 0;
  for (std::size_t i = 1; i < order.size(); ++i) close += std::abs(order[i] - order[i - 1]) <= 5;
  // A random order has about 10 in 999.
  CHECK(close < 40);
}

TEST_CASE("small sets are drawn in every order", "[data]") {
  std::set<std::vector<std::int64_t>> orders;
  for (std::int64_t epoch = 0; epoch < 200; ++epoch) orders.insert(Epoch(1, epoch, 3));
  CHECK(orders.size() == 6);
}

TEST_CASE("sets beyond 32 bits are drawn from too", "[data]") {
  const std::int64_t size = (std::int64_t{1} << 40) + 12345;
  std::set<std::int64_t> rows;
  for (std::int64_t i = 0; i < 1000; ++i) rows.insert(SampleOrder(1, 0, size - 1 - i, size));
  CHECK(rows.size() == 1000);
  CHECK(*rows.begin() >= 0);
  CHECK(*rows.rbegin() < size);
  CHECK(SampleOrder(1, 0, 5, std::numeric_limits<std::int64_t>::max()) >= 0);
}

TEST_CASE("a place outside the epoch is refused", "[data]") {
  CHECK_THROWS_WITH(SampleOrder(1, 0, 4, 4), "sample order: expected an index in [0, 4), got 4");
  CHECK_THROWS_WITH(SampleOrder(1, 0, -1, 4), "sample order: expected an index in [0, 4), got -1");
  CHECK_THROWS(SampleOrder(1, 0, 0, 0));
}

}  // namespace
}  // namespace troupe
