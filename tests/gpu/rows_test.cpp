// The plain loops, against what their comments say.
#include "gpu/kernels/rows.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

/// num_rows rows of `width` words, no word twice.
std::vector<std::uint32_t> Rows(std::int64_t num_rows, std::int64_t width, std::uint32_t from) {
  std::vector<std::uint32_t> rows(static_cast<std::size_t>(num_rows * width));
  std::iota(rows.begin(), rows.end(), from);
  return rows;
}

std::byte* Bytes(std::vector<std::uint32_t>& rows) {
  return reinterpret_cast<std::byte*>(rows.data());
}

std::vector<std::int64_t> SomeOf(std::int64_t num_rows, std::size_t count, unsigned seed) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(num_rows));
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), std::mt19937(seed));
  all.resize(count);
  return all;
}

}  // namespace

TEST_CASE("rows are gathered in the order of the table", "[gpu-kernels]") {
  auto source = Rows(5, 3, 100);
  const std::vector<std::int64_t> index = {4, 0, 4, 2};
  std::vector<std::uint32_t> got(4 * 3);
  GatherRows(Bytes(source), index.data(), 4, 12, Bytes(got));
  CHECK(got ==
        std::vector<std::uint32_t>{112, 113, 114, 100, 101, 102, 112, 113, 114, 106, 107, 108});
}

TEST_CASE("scattering and gathering by one table are inverse, and nothing else is touched",
          "[gpu-kernels]") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto index = SomeOf(11, seed % 12, seed);
    const auto count = static_cast<std::int64_t>(index.size());
    auto rows = Rows(count, 5, 1000);
    auto target = Rows(11, 5, 0);
    const auto before = target;
    ScatterRows(Bytes(rows), index.data(), count, 20, Bytes(target));
    std::vector<std::uint32_t> back(rows.size());
    GatherRows(Bytes(target), index.data(), count, 20, Bytes(back));
    CHECK(back == rows);
    for (std::int64_t row = 0; row < 11; ++row) {
      if (std::find(index.begin(), index.end(), row) != index.end()) continue;
      for (std::size_t i = 0; i < 5; ++i) {
        const std::size_t at = static_cast<std::size_t>(row) * 5 + i;
        CHECK(target[at] == before[at]);
      }
    }
  }
}

TEST_CASE("rows that are taken leave zeros behind", "[gpu-kernels]") {
  auto rows = Rows(6, 2, 1);
  const std::vector<std::int64_t> index = {5, 1};
  std::vector<std::uint32_t> taken(4);
  TakeRows(Bytes(rows), index.data(), 2, 8, Bytes(taken));
  CHECK(taken == std::vector<std::uint32_t>{11, 12, 3, 4});
  CHECK(rows == std::vector<std::uint32_t>{1, 2, 0, 0, 5, 6, 7, 8, 9, 10, 0, 0});
}

TEST_CASE("a row's checksum is of its content and of the order in it, not of its place",
          "[gpu-kernels]") {
  auto rows = Rows(4, 3, 7);
  rows[6] = rows[0];  // row 2 is row 0, row 3 is row 0 with two words exchanged
  rows[7] = rows[1];
  rows[8] = rows[2];
  rows[9] = rows[1];
  rows[10] = rows[0];
  rows[11] = rows[2];
  std::vector<std::uint64_t> sums(4);
  RowChecksums(Bytes(rows), 4, 12, sums.data());
  CHECK(sums[0] == sums[2]);
  CHECK(sums[0] != sums[1]);
  CHECK(sums[0] != sums[3]);
  std::vector<std::uint32_t> zeros(3);
  RowChecksums(Bytes(zeros), 1, 12, sums.data());
  RowChecksums(Bytes(zeros), 1, 8, sums.data() + 1);
  CHECK(sums[0] != sums[1]);
}

TEST_CASE("every bit of a row counts in its checksum", "[gpu-kernels]") {
  std::vector<std::uint32_t> row(8);
  std::map<std::uint64_t, int> seen;
  for (std::size_t bit = 0; bit < 8 * 32; ++bit) {
    row.assign(8, 0);
    row[bit / 32] = 1U << (bit % 32);
    std::uint64_t sum = 0;
    RowChecksums(Bytes(row), 1, 32, &sum);
    ++seen[sum];
  }
  CHECK(seen.size() == 8 * 32);
}

}  // namespace troupe
