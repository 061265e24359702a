#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include "kinds/synthetic.hpp"
#include "tests/torch/programs_fixture.hpp"

namespace troupe {
namespace {

/// Runs `work` and returns the text of what it throws.
template <class Work>
std::string ErrorOf(Work work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("wrong input is refused in one line that says what was expected and what came",
          "[torch]") {
  const Config config = SmallConfig();
  Job job(config);
  StageProgram& language = job.Program("language");
  Inputs inputs = MakeInputs(config, {1, 0}, 10);
  Buffer rows = Buffer::Zeros({4, 16}, DType::kFloat64);
  const auto forward = [&] {
    language.Forward(
        {.train = false, .inputs = {rows}, .data = std::make_shared<const Inputs>(inputs)});
  };
  CHECK(ErrorOf(forward) == "no error");

  SECTION("fewer rows than positions") {
    rows = rows.Rows(0, 3);
    CHECK(ErrorOf(forward) ==
          "language: expected 4 rows of 16 from vision, one for each position, got 3 rows of 16");
  }
  SECTION("another hidden size") {
    rows = Buffer::Zeros({4, 8}, DType::kFloat64);
    CHECK(ErrorOf(forward) ==
          "language: expected 4 rows of 16 from vision, one for each position, got 4 rows of 8");
  }
  SECTION("another precision") {
    rows = Buffer::Zeros({4, 16}, DType::kFloat32);
    CHECK(ErrorOf(forward) ==
          "language.s0 dp0 rank 1: input 0: expected 2 dimensions of float64, got [4, 16] of "
          "float32");
  }
  SECTION("no rows at all") {
    rows = Buffer();
    CHECK(ErrorOf(forward) ==
          "language.s0 dp0 rank 1: input 0: expected 2 dimensions of float64, got no tensor");
  }
  SECTION("a token outside the vocabulary") {
    inputs.tokens.as<std::int64_t>()[3] = 21;
    CHECK(ErrorOf(forward) == "language: expected tokens in [0, 21), got 21");
  }
  SECTION("a label outside the vocabulary") {
    inputs.labels.as<std::int64_t>()[3] = -1;
    CHECK(ErrorOf(forward) == "language: expected labels in [0, 21), got -1");
  }
  SECTION("a position outside the samples") {
    inputs.positions["vision"].as<std::int64_t>()[2] = 26;
    CHECK(ErrorOf(forward) == "language: expected positions of vision in [0, 26), got 26");
  }
  SECTION("labels of another shape") {
    inputs.labels = inputs.labels.Rows(0, 1);
    CHECK(ErrorOf(forward) == "language: expected labels [2, 13], got [1, 13]");
  }
  SECTION("more tokens than the context") {
    inputs.tokens = Buffer::Zeros({1, 17}, DType::kInt64);
    inputs.labels = Buffer::Zeros({1, 17}, DType::kInt64);
    CHECK(ErrorOf(forward) ==
          "language: expected at most 16 tokens of 16 values per sample, got 17 of 16");
  }
  SECTION("images of another size") {
    inputs.fields["vision"].values = Buffer::Zeros({1, 3, 8, 4}, DType::kFloat32);
    CHECK(ErrorOf([&] {
            job.Program("vision").Forward(
                {.train = false, .inputs = {}, .data = std::make_shared<const Inputs>(inputs)});
          }) == "vision: expected image [1, 3, 8, 8], got [1, 3, 8, 4]");
  }
  SECTION("no data") {
    CHECK(ErrorOf([&] {
            job.Program("vision").Forward({.train = false, .inputs = {}, .data = nullptr});
          }) == "vision: expected input data, got none");
  }
}

TEST_CASE("modules and edges that no program computes are refused", "[torch]") {
  Config config = SmallConfig();
  const auto make = [&config] { const Job job(config); };
  SECTION("a module that computes nothing") {
    config.modules[0].model = SyntheticConfig();
    CHECK(ErrorOf(make) == "vision: expected a module that computes, got a synthetic one");
  }
  SECTION("an edge into a module that takes no rows") {
    std::swap(config.edges[0].from, config.edges[0].to);
    CHECK(ErrorOf(make) ==
          "vision.s0 dp0 rank 0: edge language -> vision: vision reads images; expected a module "
          "that takes rows");
  }
}

TEST_CASE("passes out of order are refused", "[torch]") {
  const Config config = SmallConfig();
  Job job(config);
  StageProgram& vision = job.Program("vision");
  const auto data = std::make_shared<const Inputs>(MakeInputs(config, {1}, 10));
  const ForwardPass pass{.unit = 5, .inputs = {}, .data = data};
  CHECK(ErrorOf([&] { vision.Backward({.unit = 5, .gradients = {}}); }) ==
        "vision.s0 dp0 rank 0: backward of unit 5 without its forward");
  vision.Forward(pass);
  CHECK(ErrorOf([&] { vision.Forward(pass); }) ==
        "vision.s0 dp0 rank 0: unit 5 is in flight already");
  CHECK(ErrorOf([&] { vision.Update({.step = 1}); }) ==
        "vision.s0 dp0 rank 0: optimizer step while unit 5 awaits its backward");
  CHECK(ErrorOf([&] { vision.ReduceGradients(); }) ==
        "vision.s0 dp0 rank 0: gradient reduction while unit 5 awaits its backward");
}

TEST_CASE("weight gradients that are owed stop the update, and come once", "[torch]") {
  const Config config = SmallConfig();
  Job job(config, /*split=*/true);
  job.Train(TwoMicrobatches(config), kScale);
  StageProgram& language = job.Program("language");
  CHECK(ErrorOf([&] { language.BackwardWeights(0); }) ==
        "language.s0 dp0 rank 1: weight gradients of unit 0 without a backward that was split");
}

}  // namespace
}  // namespace troupe
