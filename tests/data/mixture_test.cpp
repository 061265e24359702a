#include "data/order/mixture.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

/// The most by which a source is ahead of or behind its share in a prefix of the order.
double WorstOf(const Mixture& mixture, const std::vector<double>& weights, std::int64_t places) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  std::vector<std::int64_t> given(weights.size(), 0);
  double worst = 0;
  for (std::int64_t place = 0; place < places; ++place) {
    const auto [source, draw] = mixture.At(place);
    auto& count = given[static_cast<std::size_t>(source)];
    REQUIRE(draw == count);
    ++count;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double owed = weights[i] / sum * static_cast<double>(place + 1);
      worst = std::max(worst, std::abs(owed - static_cast<double>(given[i])));
    }
  }
  return worst;
}

TEST_CASE("every prefix has the share of each source to within one sample", "[data]") {
  const std::vector<std::vector<double>> weights = {{1},
                                                    {0.7, 0.3},
                                                    {1, 1, 1},
                                                    {3, 2, 1},
                                                    {0.999, 0.001},
                                                    {0.5, 0.25, 0.25},
                                                    {5, 1, 1, 1, 1, 1, 1},
                                                    {0.49, 0.01, 0.5},
                                                    {0.245, 0.005, 0.25, 0.5}};
  for (const auto& each : weights) {
    const Mixture mixture(each);
    CAPTURE(each, mixture.shares());
    CHECK(WorstOf(mixture, each, 2 * mixture.period() + 7) < 1.0);
  }
  CHECK(Mixture({0.7, 0.3}).shares() == std::vector<std::int64_t>{7, 3});
}

TEST_CASE("so have random mixtures", "[data]") {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<double> weights;
    const int count = 2 + static_cast<int>(random() % 12);
    for (int i = 0; i < count; ++i)
      weights.push_back(0.01 * static_cast<double>(1 + random() % 100));
    const Mixture mixture(weights);
    CAPTURE(weights);
    CHECK(WorstOf(mixture, weights, mixture.period() + 100) < 1.0);
  }
}

TEST_CASE("weights that are no whole millionths are rounded to such", "[data]") {
  const Mixture mixture({1.0 / 3, 2.0 / 3 + 1e-8});
  CHECK(mixture.period() <= 1'000'001);
  CHECK(WorstOf(mixture, {1.0 / 3, 2.0 / 3}, 100'000) < 1.1);
  CHECK(Mixture({1e-300, 1}).shares()[0] == 1);  // each source is drawn at some time
  for (const std::vector<double>& weights : std::vector<std::vector<double>>{
           {}, {0}, {1, -1}, {std::numeric_limits<double>::infinity()}, {std::nan("")}}) {
    CHECK_THROWS_AS(Mixture(weights), std::invalid_argument);
  }
}

}  // namespace
}  // namespace troupe
