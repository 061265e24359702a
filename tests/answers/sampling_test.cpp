#include "answers/sampling.hpp"

#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

const std::vector<double> kLogits = {std::log(0.1), std::log(0.4), std::log(0.3), std::log(0.2)};

/// How often each token is drawn.
std::vector<double> Shares(const Sampling& sampling) {
  constexpr int kDraws = 20'000;
  std::vector<double> shares(kLogits.size(), 0.0);
  for (int i = 0; i < kDraws; ++i) {
    const auto answer = static_cast<std::uint64_t>(i / 100);
    const std::int64_t token =
        ChooseToken(kLogits, sampling, answer, static_cast<std::uint64_t>(i % 100));
    shares.at(static_cast<std::size_t>(token)) += 1.0 / kDraws;
  }
  return shares;
}

void CheckShares(const Sampling& sampling, const std::vector<double>& wanted) {
  const std::vector<double> shares = Shares(sampling);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    INFO("token " << i);
    CHECK(shares[i] == Approx(wanted[i]).margin(0.015));
    if (wanted[i] == 0.0) CHECK(shares[i] == 0.0);
  }
}

TEST_CASE("without a temperature the most probable token is chosen, the first of equals",
          "[answers]") {
  CHECK(ChooseToken(kLogits, {}, 0, 0) == 1);
  CHECK(ChooseToken(std::vector{1.0, 3.0, 3.0}, {}, 5, 9) == 1);
  CHECK_THROWS_WITH(ChooseToken(std::vector{1.0, std::nan(""), 3.0}, {}, 5, 9),
                    Catch::Matchers::Contains("not finite"));
}

TEST_CASE("tokens are drawn by their probabilities", "[answers]") {
  CheckShares({.temperature = 1.0}, {0.1, 0.4, 0.3, 0.2});
  // Probabilities to the power of 1 / temperature: squares.
  CheckShares({.temperature = 0.5}, {0.01 / 0.3, 0.16 / 0.3, 0.09 / 0.3, 0.04 / 0.3});
}

TEST_CASE("top_k and top_p leave out what is improbable", "[answers]") {
  CheckShares({.temperature = 1.0, .top_k = 2}, {0.0, 4.0 / 7, 3.0 / 7, 0.0});
  CheckShares({.temperature = 1.0, .top_k = 9}, {0.1, 0.4, 0.3, 0.2});
  CheckShares({.temperature = 1.0, .top_p = 0.65}, {0.0, 4.0 / 7, 3.0 / 7, 0.0});
  CheckShares({.temperature = 1.0, .top_p = 0.71}, {0.0, 4.0 / 9, 3.0 / 9, 2.0 / 9});
  CheckShares({.temperature = 1.0, .top_p = 0.0}, {0.0, 1.0, 0.0, 0.0});
}

TEST_CASE("a draw depends on seed, answer and place", "[answers]") {
  std::vector<double> flat(50, 0.0);
  const auto draw = [&](std::uint64_t seed, std::uint64_t answer, std::uint64_t place) {
    return ChooseToken(flat, {.temperature = 1.0, .seed = seed}, answer, place);
  };
  CHECK(draw(1, 2, 3) == draw(1, 2, 3));
  int same = 0;
  for (std::uint64_t i = 0; i < 20; ++i) {
    same += (draw(1, 2, i) == draw(2, 2, i)) + (draw(1, 2, i) == draw(1, 3, i)) +
            (draw(1, 2, i) == draw(1, 2, i + 1));
  }
  CHECK(same < 10);
}

}  // namespace
}  // namespace troupe
