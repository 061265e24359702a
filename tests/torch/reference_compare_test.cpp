#include <cmath>
#include <initializer_list>
#include <limits>
#include <stdexcept>

#include <catch2/catch.hpp>

#include "modules/torch/compare.hpp"

using namespace troupe;

namespace {

TensorPiece Piece(const std::string& name, const Shape& global, const Shape& offsets,
                  const Shape& shape, std::initializer_list<double> values) {
  TensorPiece piece{name, global, offsets, Buffer::Allocate(shape, DType::kFloat64), true};
  std::copy(values.begin(), values.end(), piece.value.as<double>());
  return piece;
}

TensorPiece Whole(const std::string& name, const Shape& shape,
                  std::initializer_list<double> values) {
  return Piece(name, shape, Shape(shape.size(), 0), shape, values);
}

/// A matrix [3, 4] and a vector [2] of the language model, a vector [2] of vision.
std::vector<TensorPiece> Reference() {
  return {Whole("language.a.weight", {3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -20}),
          Whole("language.b", {2}, {0.5, 0.25}), Whole("vision.c", {2}, {3e-7, -1e-7})};
}

/// The same, the matrix cut into two column pieces, the vector held twice.
std::vector<TensorPiece> Shards() {
  return {Piece("language.a.weight", {3, 4}, {0, 0}, {3, 1}, {1, 5, 9}),
          Piece("language.a.weight", {3, 4}, {0, 1}, {3, 3}, {2, 3, 4, 6, 7, 8, 10, 11, -20}),
          Whole("language.b", {2}, {0.5, 0.25}), Whole("language.b", {2}, {0.5, 0.25}),
          Whole("vision.c", {2}, {3e-7, -1e-7})};
}

std::vector<std::string> FaultsOf(const std::vector<TensorPiece>& shards, double limit = 1e-5) {
  return Faults(CompareTensors(Reference(), shards), limit);
}

}  // namespace

TEST_CASE("shards that hold the reference have no fault, even at the limit 0") {
  CHECK(FaultsOf(Shards(), 0.0).empty());
}

TEST_CASE("a difference is relative to the largest element of the whole tensor") {
  auto shards = Shards();
  shards[0].value.as<double>()[1] = 5.1;
  const Comparison comparison = CompareTensors(Reference(), shards);
  const TensorDifference& tensor = comparison.tensors.at(0);
  CHECK(tensor.name == "language.a.weight");
  CHECK(tensor.scale == 20.0);
  CHECK(tensor.worst == Approx(0.1 / 20.0));
  CHECK(tensor.worst_index == Shape{1, 0});
  CHECK(Faults(comparison, 0.006).empty());
  CHECK(Faults(comparison, 0.004) ==
        std::vector<std::string>{"language.a.weight: element [1, 0]: expected 5, got 5.1: 0.005 of "
                                 "the largest element 20, the limit is 0.004"});
}

TEST_CASE("two elements that changed places are found") {
  auto shards = Shards();
  std::swap(shards[1].value.as<double>()[4], shards[1].value.as<double>()[5]);
  const Comparison comparison = CompareTensors(Reference(), shards);
  CHECK(comparison.tensors[0].worst_index == Shape{1, 2});
  CHECK(Faults(comparison, 1e-5).size() == 1);
}

TEST_CASE("two pieces that changed places are found") {
  auto shards = Shards();
  std::swap(shards[2].value, shards[4].value);
  CHECK(FaultsOf(shards).size() == 3);  // b, its copies, c
}

TEST_CASE("a tensor that is doubled is found") {
  auto shards = Shards();
  for (int i = 0; i < 2; ++i) shards[4].value.as<double>()[i] *= 2.0;
  const Comparison comparison = CompareTensors(Reference(), shards);
  CHECK(comparison.tensors[2].worst == Approx(1.0));
  CHECK(Faults(comparison, 0.5).size() == 1);
}

TEST_CASE("a copy that differs is found, whichever of the copies it is") {
  const auto which = GENERATE(std::size_t{2}, std::size_t{3});
  auto shards = Shards();
  shards[which].value.as<double>()[1] += 0.005;
  const Comparison comparison = CompareTensors(Reference(), shards);
  CHECK(comparison.tensors[1].worst == Approx(0.01));
  CHECK(comparison.tensors[1].copies_differ == Approx(0.01));
  CHECK(Faults(comparison, 0.009).size() == 2);
}

TEST_CASE("copies that agree with the reference but not with each other are found") {
  auto shards = Shards();
  shards[2].value.as<double>()[1] += 0.0009;
  shards[3].value.as<double>()[1] -= 0.0009;
  CHECK(
      FaultsOf(shards, 0.002) ==
      std::vector<std::string>{"language.b: copies of one element differ by 0.0036 of the largest "
                               "element 0.5, the limit is 0.002"});
}

TEST_CASE("a number that is not finite is never within a limit") {
  const double value =
      GENERATE(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity());
  auto shards = Shards();
  auto reference = Reference();
  SECTION("in a shard") { shards[1].value.as<double>()[2] = value; }
  SECTION("in the reference") { reference[0].value.as<double>()[3] = value; }
  SECTION("in both") {
    shards[1].value.as<double>()[2] = value;
    reference[0].value.as<double>()[3] = value;
  }
  const Comparison comparison = CompareTensors(reference, shards);
  CHECK(std::isinf(comparison.tensors[0].worst));
  CHECK(comparison.tensors[0].worst_index == Shape{0, 3});
  CHECK(Faults(comparison, 1e300).size() == 1);
}

TEST_CASE("a tensor that no shard holds is found") {
  auto shards = Shards();
  shards.pop_back();
  const Comparison comparison = CompareTensors(Reference(), shards);
  CHECK(comparison.missing == std::vector<std::string>{"vision.c"});
  CHECK(Faults(comparison, 1.0) == std::vector<std::string>{"vision.c: no shard holds it"});
}

TEST_CASE("elements that no piece holds are found") {
  auto shards = Shards();
  shards.erase(shards.begin());
  CHECK(FaultsOf(shards) ==
        std::vector<std::string>{"language.a.weight: no piece holds 3 of 12 elements"});
}

TEST_CASE("a tensor that only a shard holds is found once") {
  auto shards = Shards();
  shards.push_back(Whole("vision.d", {1}, {1}));
  shards.push_back(Whole("vision.d", {1}, {1}));
  CHECK(FaultsOf(shards) ==
        std::vector<std::string>{"vision.d: a shard holds it, the reference does not"});
}

TEST_CASE("a piece that does not fit its tensor is found") {
  auto shards = Shards();
  shards.push_back(shards[2]);
  SECTION("another shape") {
    shards.back().global_shape = {2, 1};
    CHECK(FaultsOf(shards) ==
          std::vector<std::string>{"language.b: expected a piece of [2], got one of [2, 1]"});
  }
  SECTION("beyond the end") {
    shards.back().offsets = {1};
    CHECK(FaultsOf(shards) ==
          std::vector<std::string>{"language.b: piece [2] at [1] is not inside [2]"});
  }
  SECTION("before the beginning") {
    shards.back().offsets = {-1};
    CHECK(FaultsOf(shards).size() == 1);
  }
  SECTION("offsets of another number of dimensions") {
    shards.back().offsets = {0, 0};
    CHECK(FaultsOf(shards).size() == 1);
  }
  SECTION("another number type") {
    shards.back().value = Buffer::Zeros({2}, DType::kInt64);
    CHECK(FaultsOf(shards) ==
          std::vector<std::string>{"language.b: expected float32, float64 or bfloat16, got int64"});
  }
  SECTION("no value") {
    shards.back().value = Buffer();
    CHECK(FaultsOf(shards) == std::vector<std::string>{"language.b: the piece has no value"});
  }
}

TEST_CASE("where the reference is zero the pieces must be zero") {
  const std::vector<TensorPiece> reference = {Whole("language.a", {2}, {0, 0})};
  CHECK(Faults(CompareTensors(reference, reference), 0.0).empty());
  const std::vector<TensorPiece> shards = {Whole("language.a", {2}, {0, 1e-300})};
  CHECK(Faults(CompareTensors(reference, shards), 1.0).size() == 1);
}

TEST_CASE("the bias of the keys, whose gradient is rounding, has the size of their weight") {
  const std::vector<TensorPiece> reference = {
      Whole("vision.k_proj.bias", {2}, {1e-17, -2e-17}),
      Whole("vision.k_proj.weight", {2, 2}, {0.1, 0.2, 0.3, 0.4}),
      Whole("vision.q_proj.bias", {2}, {1e-17, -2e-17})};
  auto shards = reference;
  shards[0] = Whole("vision.k_proj.bias", {2}, {3e-17, 5e-17});
  CHECK(Faults(CompareTensors(reference, shards), 1e-5).empty());
  shards[0] = Whole("vision.k_proj.bias", {2}, {1e-17, 1e-5});
  CHECK(Faults(CompareTensors(reference, shards), 1e-5).size() == 1);
  shards[0] = reference[0];
  shards[2] = Whole("vision.q_proj.bias", {2}, {3e-17, 5e-17});
  CHECK(Faults(CompareTensors(reference, shards), 1e-5).size() == 1);
}

TEST_CASE("float32 pieces are compared with a float64 reference") {
  const std::vector<TensorPiece> reference = {Whole("language.a", {2}, {0.1, 0.2})};
  std::vector<TensorPiece> shards = reference;
  shards[0].value = Buffer::Allocate({2}, DType::kFloat32);
  shards[0].value.as<float>()[0] = 0.1f;
  shards[0].value.as<float>()[1] = 0.2f;
  CHECK(Faults(CompareTensors(reference, shards), 1e-7).empty());
  CHECK_FALSE(Faults(CompareTensors(reference, shards), 1e-10).empty());
}

TEST_CASE("scalars and tensors without elements can be compared") {
  const std::vector<TensorPiece> reference = {Whole("language.scalar", {}, {2}),
                                              Whole("language.empty", {0, 3}, {})};
  CHECK(Faults(CompareTensors(reference, reference), 0.0).empty());
  CHECK(Faults(CompareTensors(reference, {Whole("language.scalar", {}, {3}), reference[1]}), 0.1)
            .size() == 1);
}

TEST_CASE("a reference that is cut or named twice is refused") {
  auto reference = Reference();
  SECTION("cut") {
    reference[1] = Piece("language.b", {2}, {0}, {1}, {0.5});
    CHECK_THROWS_AS(CompareTensors(reference, {}), std::invalid_argument);
  }
  SECTION("twice") {
    reference.push_back(reference[0]);
    CHECK_THROWS_WITH(CompareTensors(reference, {}), "reference of language.a.weight: given twice");
  }
}

TEST_CASE("the table has one line per module with the worst of each kind") {
  auto gradients = Shards();
  gradients[2].value.as<double>()[0] = 0.501;
  auto parameters = Shards();
  parameters.pop_back();
  const std::map<TensorKind, Comparison> kinds = {
      {TensorKind::kGradient, CompareTensors(Reference(), gradients)},
      {TensorKind::kParameter, CompareTensors(Reference(), parameters)}};
  CHECK(FormatTable(kinds) ==
        "module    tensors  worst gradient  worst parameter  worst first moment  "
        "worst second moment  worst tensor\n"
        "language        2           0.002                0                   -"
        "                    -  language.b\n"
        "vision          1               0              inf                   -"
        "                    -  vision.c\n");
}
