#include "modules/tensor_pieces.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "modules/synthetic/synthetic_program.hpp"

namespace troupe {
namespace {

TensorPiece Piece(const std::string& name, std::int64_t row, double first) {
  TensorPiece piece{.name = name,
                    .global_shape = {4, 3},
                    .offsets = {row, 0},
                    .value = Buffer::Allocate({2, 3}, DType::kFloat64)};
  for (int i = 0; i < 6; ++i) piece.value.as<double>()[i] = first + i;
  return piece;
}

double First(const TensorPiece& piece) { return *piece.value.as<double>(); }

TEST_CASE("pieces are written over those of their name, in any order", "[modules]") {
  const std::vector<TensorPiece> held = {Piece("a", 0, 10), Piece("b", 2, 20)};
  const std::vector<TensorPiece> given = {Piece("b", 2, 40), Piece("a", 0, 30)};
  OverwritePieces("m.s0", held, given);
  CHECK(First(held[0]) == 30);
  CHECK(First(held[1]) == 40);
  CHECK(held[1].value.as<double>()[5] == 45);
  OverwritePieces("m.s0", held, held);
  CHECK(First(held[0]) == 30);
}

TEST_CASE("pieces that are not the same are refused by name and change nothing", "[modules]") {
  const std::vector<TensorPiece> held = {Piece("a", 0, 10), Piece("b", 2, 20)};
  std::vector<TensorPiece> given = {Piece("a", 0, 30), Piece("b", 2, 40)};
  std::string expected;
  SECTION("missing") {
    given.pop_back();
    expected = "missing, expected [2, 3] of float64 at [2, 0] of [4, 3]";
  }
  SECTION("twice") {
    given.push_back(Piece("b", 2, 50));
    expected = "given twice";
  }
  SECTION("unknown") {
    given[1].name = "c";
    expected = "not in this stage";
  }
  SECTION("elsewhere") {
    given[1].offsets = {1, 0};
    expected =
        "expected [2, 3] of float64 at [2, 0] of [4, 3], got [2, 3] of float64 at [1, 0] of [4, 3]";
  }
  SECTION("of another tensor") {
    given[1].global_shape = {5, 3};
    expected =
        "expected [2, 3] of float64 at [2, 0] of [4, 3], got [2, 3] of float64 at [2, 0] of [5, 3]";
  }
  SECTION("of another shape") {
    given[1].value = Buffer::Zeros({3, 2}, DType::kFloat64);
    expected =
        "expected [2, 3] of float64 at [2, 0] of [4, 3], got [3, 2] of float64 at [2, 0] of [4, 3]";
  }
  SECTION("of another type") {
    given[1].value = Buffer::Zeros({2, 3}, DType::kInt64);
    expected =
        "expected [2, 3] of float64 at [2, 0] of [4, 3], got [2, 3] of int64 at [2, 0] of [4, 3]";
  }
  SECTION("without a value") {
    given[1].value = Buffer();
    expected = "expected [2, 3] of float64 at [2, 0] of [4, 3], got no tensor in this process";
  }
  const std::string name = given.size() > 1 ? given[1].name : "b";
  CHECK_THROWS_WITH(OverwritePieces("m.s0", held, given), "m.s0: tensor " + name + ": " + expected);
  CHECK(First(held[0]) == 10);
  CHECK(First(held[1]) == 20);
}

TEST_CASE("a synthetic program goes on from the weight it is given", "[modules]") {
  const ShardAddress shard{.module = "m"};
  SyntheticShape shape;
  shape.links_out = 1;
  SyntheticProgram from(shard, {}, shape, nullptr);
  *from.Tensors(TensorKind::kParameter).at(0).value.as<double>() = 5.0;
  SyntheticProgram to(shard, {}, shape, nullptr);
  to.SetTensors(TensorKind::kParameter, from.Tensors(TensorKind::kParameter));
  CHECK(First(to.Tensors(TensorKind::kParameter).at(0)) == 5.0);
  to.SetTensors(TensorKind::kFirstMoment, {});
  CHECK_THROWS_WITH(to.SetTensors(TensorKind::kParameter, {}),
                    "m.s0 dp0 rank 0: tensor m.s0.weight: missing, expected [1] of float64 at [0] "
                    "of [1]");
}

}  // namespace
}  // namespace troupe
