// The same seed gives the same bits; the same global batch gives the same losses in any layout.
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/parity/proof.hpp"
#include "tests/parity/setup.hpp"

namespace troupe {
namespace {

/// The bits that a run leaves behind.
struct Recording : JobObserver {
  std::vector<double> losses;  ///< nats per valid token, by step
  std::vector<double> norms;
  /// By tensor and offsets the bytes of every copy: shards answer in any order.
  std::map<std::string, std::multiset<std::string>> parameters;

  void OnRound(const RoundResult& result) override {
    losses.push_back(result.loss.loss / static_cast<double>(result.loss.tokens));
    norms.push_back(result.gradient_norm);
  }
  void OnFinished(const std::vector<TensorPiece>& pieces, const FetchPiece&) override {
    for (const TensorPiece& piece : pieces) {
      parameters[piece.name + " " + ToString(piece.offsets)].emplace(
          reinterpret_cast<const char*>(piece.value.data()), piece.value.num_bytes());
    }
  }
};

Recording Record(const Config& config) {
  const auto recording = std::make_shared<Recording>();
  REQUIRE(Train(config, kProofSteps, recording) == "");
  REQUIRE(recording->losses.size() == static_cast<std::size_t>(kProofSteps));
  return *recording;
}

bool SameBits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

/// Layouts of a global batch of 24 samples.
std::vector<Setup> EqualBatches() {
  return {
      Setup(Disjoint(), Layout{}).Samples(8),
      Setup(Disjoint({.dp = 4}), {.tp = 2, .pp = 2}).Samples(8),
      Setup(Colocated({.dp = 4}), {.tp = 2, .dp = 2}).Samples(4).Window(2),
      Setup(Disjoint({.dp = 3}), {.pp = 2, .dp = 2}).Samples(2).Microbatches(6),
      Setup(Inline(), {.tp = 2, .pp = 2}).Samples(6).Microbatches(4),
  };
}

}  // namespace

TEST_CASE("two runs with one seed have the same losses and parameters to the last bit",
          "[parity]") {
  const Precision precision =
      GENERATE(Precision::kFloat32, Precision::kFloat64, Precision::kBFloat16);
  for (const Setup& setup :
       {Setup(Disjoint({.dp = 4}), {.tp = 2, .pp = 2}),
        Setup(Disjoint({.dp = 3}), {.pp = 2, .dp = 2}).NoClip(),
        Setup(Colocated({.dp = 4}), Disjoint({.tp = 2, .dp = 2}), {.tp = 2, .dp = 2})}) {
    INFO(setup.name());
    Config config = setup.config();
    config.run.precision = precision;
    const Recording one = Record(config);
    const Recording two = Record(config);
    CHECK(SameBits(one.losses, two.losses));
    CHECK(SameBits(one.norms, two.norms));
    CHECK(one.parameters.size() > 50);
    CHECK(one.parameters == two.parameters);
  }
}

TEST_CASE("another seed has other losses", "[parity]") {
  const Setup setup(Disjoint({.dp = 2}), {.tp = 2});
  Config other = setup.config();
  other.run.seed += 1;
  CHECK_FALSE(SameBits(Record(setup.config()).losses, Record(other).losses));
}

// Without clipping no step waits for the one before it to end everywhere.
TEST_CASE("the loss of every step is the same in all layouts of one global batch", "[parity]") {
  const double clip_norm = GENERATE(0.05, 0.0);
  std::vector<double> expected;
  for (const Setup& setup : EqualBatches()) {
    INFO(setup.name() << ", clip_norm " << clip_norm);
    Config config = setup.config();
    config.optimizer.clip_norm = clip_norm;
    REQUIRE(config.global_batch() == 24);
    const std::vector<double> losses = Record(config).losses;
    if (expected.empty()) expected = losses;
    for (std::size_t step = 0; step < losses.size(); ++step) {
      CHECK(std::abs(losses[step] - expected[step]) < 1e-12);
    }
  }
}

}  // namespace troupe
