// What the tests of whole programs share: one run of two microbatches, and its comparison.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/torch/job.hpp"

namespace troupe {

constexpr double kExact = 1e-10;  ///< float64; cuts of inner dimensions round differently
constexpr double kScale = 1.0 / 17.0;

/// Gradients, squared norm and loss of two microbatches.
struct Outcome {
  LossSums loss;
  double squares = 0.0;
  std::map<std::string, std::vector<double>> gradients;
};

inline std::vector<Inputs> TwoMicrobatches(const Config& config) {
  return {MakeInputs(config, {1, 0, 2, 1}, 1), MakeInputs(config, {0, 1, 1, 2}, 2)};
}

inline Outcome Run(const Config& config, const std::vector<Inputs>& microbatches) {
  Job job(config);
  Outcome outcome;
  outcome.loss = job.Train(microbatches, kScale);
  outcome.squares = job.ReduceGradients();
  outcome.gradients = job.Tensors(TensorKind::kGradient);
  return outcome;
}

inline Outcome Run(const Config& config) { return Run(config, TwoMicrobatches(config)); }

inline double SquaredNorm(const Outcome& outcome) {
  double sum = 0.0;
  for (const auto& [name, values] : outcome.gradients) {
    for (const double value : values) sum += value * value;
  }
  return sum;
}

inline void RequireSame(const Outcome& one, const Outcome& other) {
  CHECK(other.loss.loss == Approx(one.loss.loss).epsilon(1e-12));
  CHECK(other.loss.tokens == one.loss.tokens);
  CHECK(other.loss.correct == one.loss.correct);
  CHECK(other.loss.content_tokens == one.loss.content_tokens);
  CHECK(other.loss.content_correct == one.loss.content_correct);
  CHECK(Difference(one.gradients, other.gradients) < kExact);
  CHECK(one.squares == Approx(SquaredNorm(one)).epsilon(1e-12));
  CHECK(other.squares == Approx(one.squares).epsilon(1e-10));
}

}  // namespace troupe
