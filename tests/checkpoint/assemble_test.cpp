#include "checkpoint/assemble.hpp"

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
