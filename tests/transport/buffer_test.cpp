#include "transport/buffer.hpp"

#include <cstring>
#include <new>
#include <numeric>
#include <stdexcept>

#include <catch2/catch.hpp>

using namespace troupe;

namespace {

/// [rows, columns] int32 that counts up from `first`.
Buffer Counting(std::int64_t rows, std::int64_t columns, int first) {
  Buffer buffer = Buffer::Allocate({rows, columns}, DType::kInt32);
  std::iota(buffer.as<int>(), buffer.as<int>() + buffer.num_elements(), first);
  return buffer;
}

std::vector<int> Values(const Buffer& buffer) {
  return {buffer.as<int>(), buffer.as<int>() + buffer.num_elements()};
}

}  // namespace

TEST_CASE("an allocated buffer is aligned to 64 bytes and has the size of its shape") {
  const Buffer buffer = Buffer::Allocate({3, 5, 7}, DType::kInt64);
  CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64 == 0);
  CHECK(buffer.num_elements() == 105);
  CHECK(buffer.num_bytes() == 840);
  CHECK(buffer.num_rows() == 3);
  CHECK(buffer.row_bytes() == 280);
  CHECK(buffer.use_count() == 1);
}

TEST_CASE("a scalar has one element and no rows") {
  const Buffer scalar = Buffer::Zeros({}, DType::kFloat64);
  CHECK(scalar.num_bytes() == 8);
  CHECK(*scalar.as<double>() == 0.0);
  CHECK_THROWS_WITH(scalar.num_rows(), "buffer: expected at least one dimension, got a scalar");
}

TEST_CASE("a buffer without elements is defined and an empty handle is not") {
  CHECK_FALSE(Buffer().defined());
  CHECK(Buffer::Allocate({0, 64}, DType::kFloat32).defined());
  const Buffer wrapped = Buffer::Wrap(nullptr, nullptr, {4, 0}, DType::kFloat32);
  CHECK(wrapped.defined());
  CHECK(wrapped.num_bytes() == 0);
  CHECK(wrapped.row_bytes() == 0);
}

TEST_CASE("zeros overwrite what the memory held before") {
  for (int i = 0; i < 8; ++i) {
    Buffer dirty = Buffer::Allocate({1000}, DType::kUInt8);
    std::memset(dirty.data(), 0xff, 1000);
  }
  const Buffer zeros = Buffer::Zeros({1000}, DType::kUInt8);
  CHECK(std::accumulate(zeros.as<std::uint8_t>(), zeros.as<std::uint8_t>() + 1000, 0) == 0);
}

TEST_CASE("impossible sizes are refused") {
  CHECK_THROWS_WITH(Buffer::Allocate({2, -1}, DType::kFloat32),
                    "buffer: expected sizes of at least 0, got [2, -1]");
  CHECK_THROWS_AS(Buffer::Allocate({0, -1}, DType::kFloat32), std::invalid_argument);
  CHECK_THROWS_AS(Buffer::Allocate({1LL << 40, 1LL << 40}, DType::kFloat32), std::bad_alloc);
  CHECK_THROWS_AS(Buffer::Allocate({1LL << 60, 2}, DType::kFloat32), std::bad_alloc);
  CHECK(Buffer::Allocate({1LL << 40, 1LL << 40, 0}, DType::kFloat32).num_elements() == 0);
  CHECK_THROWS_WITH(Buffer::Wrap(nullptr, nullptr, {2}, DType::kUInt8),
                    "buffer: expected memory for uint8 [2], got a null pointer");
}

TEST_CASE("wrapped memory lives as long as the last view of it") {
  bool released = false;
  float values[6] = {0, 1, 2, 3, 4, 5};
  Buffer view;
  {
    const std::shared_ptr<void> owner(values, [&](void*) { released = true; });
    view = Buffer::Wrap(owner, values, {3, 2}, DType::kFloat32).Rows(1, 3);
  }
  CHECK_FALSE(released);
  CHECK(view.as<float>()[0] == 2.0F);
  view = Buffer();
  CHECK(released);
}

TEST_CASE("rows share the bytes of the whole and stay inside it") {
  const Buffer whole = Counting(5, 3, 100);
  const Buffer rows = whole.Rows(1, 4);
  CHECK(rows.shape() == Shape{3, 3});
  CHECK(rows.data() == whole.data() + 12);
  CHECK(whole.use_count() == 2);
  CHECK(Values(rows.Rows(1, 2)) == std::vector<int>{106, 107, 108});
  CHECK(whole.Rows(5, 5).num_rows() == 0);
  CHECK_THROWS_WITH(whole.Rows(2, 6), "rows [2, 6): expected a part of [0, 5)");
  CHECK_THROWS_AS(whole.Rows(-1, 2), std::out_of_range);
  CHECK_THROWS_AS(whole.Rows(3, 2), std::out_of_range);
}

TEST_CASE("neighbouring rows of one allocation are joined without a copy") {
  const Buffer whole = Counting(6, 2, 0);
  const Buffer joined = ConcatenateRows({whole.Rows(1, 2), whole.Rows(2, 2), whole.Rows(2, 5)});
  CHECK(joined.data() == whole.data() + 8);
  CHECK(joined.shape() == Shape{4, 2});
}

TEST_CASE("rows in another order or of other allocations are copied in the order given") {
  const Buffer whole = Counting(4, 2, 0);
  const Buffer other = Counting(1, 2, 50);
  const Buffer joined = ConcatenateRows({whole.Rows(2, 4), other, whole.Rows(0, 1)});
  CHECK(Values(joined) == std::vector<int>{4, 5, 6, 7, 50, 51, 0, 1});
  CHECK(joined.use_count() == 1);
}

TEST_CASE("a single part with rows is returned as it is, wherever it stands") {
  const Buffer filled = Counting(3, 2, 7);
  const Buffer empty = Buffer::Allocate({0, 2}, DType::kInt32);
  CHECK(ConcatenateRows({empty, filled, empty}).data() == filled.data());
  CHECK(ConcatenateRows({empty, empty}).shape() == Shape{0, 2});
}

TEST_CASE("rows of different kinds are not joined, not even when there are none") {
  const Buffer part = Counting(3, 2, 0);
  CHECK_THROWS_WITH(ConcatenateRows({}),
                    "concatenation of rows: expected at least one part, got none");
  CHECK_THROWS_WITH(ConcatenateRows({part, Buffer::Allocate({0, 3}, DType::kInt32)}),
                    "concatenation of rows: expected rows as in int32 [3, 2], got int32 [0, 3]");
  CHECK_THROWS_AS(ConcatenateRows({part, Buffer::Allocate({3, 2}, DType::kFloat32)}),
                  std::invalid_argument);
  CHECK_THROWS_AS(ConcatenateRows({part, Buffer()}), std::invalid_argument);
  CHECK_THROWS_AS(ConcatenateRows({Buffer::Zeros({}, DType::kInt32)}), std::invalid_argument);
}

TEST_CASE("shapes and dtypes print as people write them") {
  CHECK(ToString(Shape{}) == "[]");
  CHECK(ToString(Shape{16, 64}) == "[16, 64]");
  CHECK(ToString(DType::kUInt8) == "uint8");
  CHECK(SizeOf(DType::kFloat64) == 8);
}

TEST_CASE("bytes of a buffer are a view of them, on its device and in its parts") {
  const Buffer first = Counting(3, 2, 7);
  const Buffer second = Counting(2, 2, 20);
  const auto on = [](const Buffer& buffer) {
    return Buffer::Wrap(buffer.owner(), buffer.data(), buffer.shape(), buffer.dtype(), 4);
  };
  const Buffer some = BytesOf(on(first), 5, 9);
  CHECK(some.data() == first.data() + 5);
  CHECK(some.shape() == Shape{9});
  CHECK(some.device() == 4);
  const Buffer parts = ConcatenateRows({on(first), on(second)});
  const Buffer across = BytesOf(parts, 20, 10);
  REQUIRE(across.parts().size() == 2);
  CHECK(across.num_bytes() == 10);
  CHECK(across.parts()[0].data() == first.data() + 20);
  CHECK(across.parts()[1].num_bytes() == 6);
  CHECK(BytesOf(parts, 24, 16).data() == second.data());
  CHECK(BytesOf(parts, 40, 0).num_bytes() == 0);
  CHECK_THROWS_WITH(BytesOf(first, 20, 5), "bytes [20, 25): expected a part of [0, 24)");
}
