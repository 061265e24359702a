#include "answers/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "layout/mix_bits.hpp"

namespace troupe {

/// In [0, 1).
static double UniformAt(std::uint64_t seed, std::uint64_t stream, std::uint64_t place) {
  const std::uint64_t bits = MixBits(MixBits(MixBits(seed) + stream * kMixStep) + place * kMixStep);
  return static_cast<double>(bits >> 11U) * 0x1p-53;
}

std::int64_t ChooseToken(std::span<const double> logits, const Sampling& sampling,
                         std::uint64_t stream, std::uint64_t place) {
  if (std::ranges::any_of(logits, [](double logit) { return std::isnan(logit); })) {
    throw std::runtime_error(
        "the model gives numbers that are not finite: its parameters are not, "
        "or they are too large for this precision");
  }
  const auto largest = std::ranges::max_element(logits);
  if (sampling.temperature <= 0.0) return largest - logits.begin();
  std::vector<std::size_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0U);
  std::ranges::stable_sort(tokens, std::greater(), [&](std::size_t id) { return logits[id]; });
  if (sampling.top_k > 0 && static_cast<std::size_t>(sampling.top_k) < tokens.size()) {
    tokens.resize(static_cast<std::size_t>(sampling.top_k));
  }
  std::vector<double> weights;
  double sum = 0.0;
  for (const std::size_t id : tokens) {
    weights.push_back(std::exp((logits[id] - *largest) / sampling.temperature));
    sum += weights.back();
  }
  double kept = 0.0;
  std::size_t count = 0;
  while (count < weights.size() && (count == 0 || kept < sampling.top_p * sum)) {
    kept += weights[count++];
  }
  double rest = UniformAt(sampling.seed, stream, place) * kept;
  std::size_t chosen = 0;
  while (chosen + 1 < count && rest >= weights[chosen]) rest -= weights[chosen++];
  return static_cast<std::int64_t>(tokens[chosen]);
}

}  // namespace troupe
