#include "checkpoint/assemble.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

/// A piece whose every element says where in the whole [rows, columns] it belongs.
TensorPiece Piece(std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) {
  TensorPiece piece;
  piece.name = "w";
  piece.global_shape = {4, 6};
  piece.offsets = {row, column};
  piece.value = Buffer::Allocate({rows, columns}, DType::kFloat32);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      piece.value.as<float>()[r * columns + c] = static_cast<float>(100 * (row + r) + column + c);
    }
  }
  return piece;
}

}  // namespace

TEST_CASE("pieces cut by rows and by columns give the whole tensor", "[checkpoint]") {
  const std::vector<std::vector<TensorPiece>> cuts = {
      {Piece(0, 0, 4, 6)},
      {Piece(3, 0, 1, 6), Piece(0, 0, 3, 6)},
      {Piece(0, 4, 4, 2), Piece(0, 0, 4, 1), Piece(0, 1, 4, 3)},
      {Piece(0, 0, 2, 3), Piece(2, 0, 2, 3), Piece(0, 3, 2, 3), Piece(2, 3, 2, 3)}};
  for (const auto& pieces : cuts) {
    const auto tensors = AssembleTensors(pieces);
    REQUIRE(tensors.size() == 1);
    for (int i = 0; i < 24; ++i) {
      CHECK(tensors[0].value.as<float>()[i] == static_cast<float>(100 * (i / 6) + i % 6));
    }
  }
}

TEST_CASE("tensors are written a few rows at a time, of what is fetched for them", "[checkpoint]") {
  constexpr std::int64_t kRows = 5000;
  constexpr std::int64_t kColumns = 1200;  // 24 MB: three bands
  const auto part = [](std::int64_t row, std::int64_t column, std::int64_t rows,
                       std::int64_t columns) {
    TensorPiece piece = Piece(0, 0, 1, 1);
    piece.global_shape = {kRows, kColumns};
    piece.offsets = {row, column};
    piece.value = Buffer::Allocate({rows, columns}, DType::kFloat32);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        piece.value.as<float>()[r * columns + c] =
            static_cast<float>((row + r) * kColumns + column + c);
      }
    }
    return piece;
  };
  TensorPiece vector = Piece(0, 0, 1, 1);
  vector.name = "a";
  vector.global_shape = {3};
  vector.offsets = {0};
  vector.value = Buffer::Zeros({3}, DType::kFloat64);
  TensorPiece copy = part(0, 0, 10, 10);
  copy.owner = false;
  const std::vector<TensorPiece> pieces = {part(0, 0, 1234, kColumns), copy, vector,
                                           part(1234, 0, kRows - 1234, 500),
                                           part(1234, 500, kRows - 1234, kColumns - 500)};
  std::size_t most = 0;
  std::size_t total = 0;
  const auto tensors = TensorsToWrite(pieces, [&](const TensorPiece& piece) {
    most = std::max(most, piece.value.num_bytes());
    total += piece.value.num_bytes();
    return piece.value;
  });
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].name == "a");
  CHECK(tensors[0].type == StoredType::kFloat64);
  CHECK(total == 0);
  std::vector<std::byte> bytes;
  tensors[1].write([&](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  });
  CHECK(most <= 8U << 20);
  CHECK(total == kRows * kColumns * 4);  // each element once
  REQUIRE(bytes.size() == kRows * kColumns * 4);
  const auto* const values = reinterpret_cast<const float*>(bytes.data());
  for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
    if (values[i] != static_cast<float>(i)) FAIL("element " << i << " is " << values[i]);
  }
  CHECK_THROWS_WITH(TensorsToWrite({Piece(0, 0, 3, 6)}, {}),
                    "tensor w: its owners hold 18 elements, expected 24");
}

TEST_CASE("copies that are not owners are left out", "[checkpoint]") {
  TensorPiece copy = Piece(0, 0, 4, 6);
  copy.owner = false;
  copy.value.as<float>()[0] = -1;
  CHECK(AssembleTensors({Piece(0, 0, 4, 6), copy})[0].value.as<float>()[0] == 0);
}

TEST_CASE("what does not make a whole tensor is refused by name", "[checkpoint]") {
  CHECK_THROWS_WITH(AssembleTensors({Piece(0, 0, 3, 6)}),
                    "tensor w: its owners hold 18 elements, expected 24");
  CHECK_THROWS_WITH(AssembleTensors({Piece(3, 0, 2, 6)}),
                    "tensor w: a piece of [2, 6] at [3, 0] does not lie inside [4, 6]");
  TensorPiece other = Piece(0, 0, 4, 6);
  other.global_shape = {4, 7};
  CHECK_THROWS_WITH(AssembleTensors({Piece(0, 0, 4, 6), other}),
                    "tensor w: pieces of [4, 6] and of [4, 7]");
}

}  // namespace troupe
