// What rounding does to a run as a whole.
#include <cmath>
#include <iostream>
#include <memory>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/parity/proof.hpp"
#include "tests/parity/setup.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kSteps = 200;
constexpr std::size_t kWindow = 20;  ///< steps whose losses are averaged: batches differ

struct Losses : JobObserver {
  std::vector<double> losses;  ///< nats per valid token, by step
  void OnRound(const RoundResult& result) override {
    losses.push_back(result.loss.loss / static_cast<double>(result.loss.tokens));
  }
};

/// Means of the losses of kWindow steps each.
std::vector<double> Curve(Config config, Precision precision) {
  config.run.steps = kSteps;
  config.run.precision = precision;
  const auto observer = std::make_shared<Losses>();
  REQUIRE(Train(config, kSteps, observer) == "");
  REQUIRE(observer->losses.size() == kSteps);
  std::vector<double> means(kSteps / kWindow);
  for (std::size_t step = 0; step < kSteps; ++step) {
    means[step / kWindow] += observer->losses[step] / static_cast<double>(kWindow);
  }
  return means;
}

}  // namespace

TEST_CASE("in bfloat16 the loss of 200 steps goes the way of float32", "[parity][slow]") {
  const Config config = Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2}).config();
  const std::vector<double> whole = Curve(config, Precision::kFloat32);
  const std::vector<double> rounded = Curve(config, Precision::kBFloat16);
  CHECK(whole.back() < 0.75 * whole.front());  // it learns, or there would be nothing to compare
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::cout << "steps " << i * kWindow + 1 << " to " << (i + 1) * kWindow << ": loss " << whole[i]
              << " in float32, " << rounded[i] << " in bfloat16\n"
              << std::flush;
    CHECK(std::abs(rounded[i] - whole[i]) < 0.02 * whole[i]);
  }
  CHECK(rounded != whole);
}

}  // namespace troupe
