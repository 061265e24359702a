// data.order moves samples: the gradient of a step is the same sum in another order.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "data/row_source.hpp"
#include "layout/mix_bits.hpp"
#include "modules/torch/compare.hpp"
#include "tests/data/scratch_folder.hpp"
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

Buffer Copied(const Buffer& buffer) {
  Buffer copy = Buffer::Allocate(buffer.shape(), buffer.dtype());
  std::memcpy(copy.data(), buffer.data(), buffer.num_bytes());
  return copy;
}

/// The gradients of the first step.
struct Gradients : JobObserver {
  std::vector<TensorPiece> pieces;
  void OnRound(const RoundResult&) override {}
  void OnGradients(const Round& round, const std::vector<TensorPiece>& gradients) override {
    if (round.step != 0) return;
    pieces = gradients;
    for (TensorPiece& piece : pieces) piece.value = Copied(piece.value);  // the run goes on
  }
};

std::vector<TensorPiece> GradientsOf(Config config, DataOrder order) {
  config.data.order = order;
  const auto gradients = std::make_shared<Gradients>();
  REQUIRE(Train(config, 1, gradients, /*inspect=*/true) == "");
  return gradients->pieces;
}

/// Writes `count` samples, each with its own answer and round(4 exp(0.8 z)) images, where z is about
/// normal.
std::string WriteLognormal(const ScratchFolder& folder, int count) {
  std::filesystem::copy("data/shapes/images", folder / "images");
  std::uint64_t state = 17;
  std::string text;
  for (int i = 0; i < count; ++i) {
    double z = -6;  // the sum of twelve uniform numbers less 6
    for (int j = 0; j < 12; ++j) {
      state += kMixStep;
      z += static_cast<double>(MixBits(state) >> 11) * 0x1p-53;
    }
    const auto images = std::llround(4 * std::exp(0.8 * z));
    std::string names;
    std::string question = "?";
    for (std::int64_t image = 0; image < images; ++image) {
      const std::string number = std::to_string((7 * i + image) % 3);
      names += (image == 0 ? "" : ", ") + std::string("\"images/train_000") + number + ".png\"";
      question += "<image>";
    }
    text += "{\"image\": [" + names + R"(], "conversations": [{"from": "human", "value": ")" +
            question + R"("}, {"from": "gpt", "value": "answer )" + std::to_string(i * i) +
            "\"}]}\n";
  }
  return folder.Write("rows.jsonl", text);
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

TEST_CASE("eight replicas get even loads of lognormal numbers of images, and the same gradients",
          "[parity]") {
  const ScratchFolder folder;
  Config config =
      Setup(Disjoint({.dp = 8}), {.dp = 8}).Samples(4).Microbatches(4).Context(512).config();
  config.data.train = WriteLognormal(folder, 300);
  const auto random = GradientsOf(config, DataOrder::kRandom);
  const auto balanced = GradientsOf(config, DataOrder::kBalanced);
  std::vector<TensorPiece> whole;  // each replica reports all tensors
  for (const TensorPiece& piece : random) {
    if (piece.owner) whole.push_back(piece);
  }
  const Comparison comparison = CompareTensors(whole, balanced);
  CHECK(comparison.tensors.size() > 50);
  CHECK(Faults(comparison, 1e-12).empty());
  double worst = 0;
  for (const TensorDifference& tensor : comparison.tensors) worst = std::max(worst, tensor.worst);
  CHECK(worst > 0);  // or nothing has moved

  config.data.order = DataOrder::kBalanced;
  const RowSource source(config);
  StepBalance mean{0, 0};
  constexpr int kDrawn = 20;
  for (int step = 0; step < kDrawn; ++step) {
    Round round;
    round.microbatches = config.schedule.microbatches;
    round.place = step * config.global_batch();
    const auto balance = source.BalanceOf(round);
    REQUIRE(balance);
    CHECK(balance->placed <= 1.03);
    mean.drawn += balance->drawn / kDrawn;
    mean.placed += balance->placed / kDrawn;
  }
  INFO("worst gradient " << worst << ", load at random " << mean.drawn << ", balanced "
                         << mean.placed);
  CHECK(mean.drawn >= 1.3);
}

}  // namespace troupe
