// data.order moves samples: the gradient of a step is the same sum in another order.
#include <cmath>
#include <memory>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/parity/proof.hpp"
#include "tests/parity/setup.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kSteps = 4;

struct Sums : JobObserver {
  std::vector<double> losses;  ///< sums over the valid tokens, by step
  std::vector<double> norms;
  std::vector<std::int64_t> tokens;
  void OnRound(const RoundResult& result) override {
    losses.push_back(result.loss.loss);
    tokens.push_back(result.loss.tokens);
    norms.push_back(result.gradient_norm);
  }
};

std::shared_ptr<Sums> Run(Config config, DataOrder order) {
  config.run.precision = Precision::kFloat64;
  config.data.order = order;
  const auto sums = std::make_shared<Sums>();
  REQUIRE(Train(config, kSteps, sums) == "");
  REQUIRE(sums->losses.size() == kSteps);
  return sums;
}

void CheckClose(double a, double b, double relative) {
  CHECK(std::abs(a - b) <= relative * std::abs(b));
}

}  // namespace

TEST_CASE("a balanced order changes losses and gradients in rounding alone", "[parity]") {
  for (const Setup& setup : {Setup(Disjoint({.dp = 4}), {.pp = 2, .dp = 2}).Microbatches(4),
                             Setup(Colocated({.dp = 4}), {.tp = 2, .pp = 2}).Microbatches(4),
                             Setup(Inline(), {.pp = 2, .dp = 2}).Packed()}) {
    const Config config = setup.config();
    const auto random = Run(config, DataOrder::kRandom);
    const auto balanced = Run(config, DataOrder::kBalanced);
    INFO(setup.name());
    CHECK(balanced->tokens == random->tokens);
    CHECK(balanced->losses != random->losses);  // or nothing has moved
    for (std::size_t step = 0; step < kSteps; ++step) {
      CAPTURE(step);
      // AdamW divides by what may be rounding alone, so later steps differ more than the first.
      CheckClose(balanced->losses[step], random->losses[step], step == 0 ? 1e-12 : 1e-9);
      CheckClose(balanced->norms[step], random->norms[step], step == 0 ? 1e-12 : 1e-9);
    }
  }
}

TEST_CASE("a step in balanced order equals the unsharded reference", "[parity]") {
  for (Config config : {Setup(Disjoint({.dp = 3}), {.pp = 2, .dp = 2}).config(),
                        Setup(Colocated({.dp = 4}), {.tp = 2, .pp = 2}).Recipe().config()}) {
    config.data.order = DataOrder::kBalanced;
    CHECK(Prove(config).Objection() == "");
  }
}

}  // namespace troupe
