// Chooses tokens by their logits.
#pragma once

#include <cstdint>
#include <span>

namespace troupe {

/// In the order of its use, as in transformers: temperature, top_k, top_p.
struct Sampling {
  double temperature = 0.0;  ///< 0: the most probable token, the first of equals
  std::int64_t top_k = 0;    ///< only the k most probable; 0: all
  double top_p = 1.0;        ///< only the most probable that together reach this probability
  std::uint64_t seed = 0;
};

/// Returns the token after `place` others of an answer, by logits [V]. The draw depends on seed,
/// stream and place alone, so that answers are the same in every batch. Throws std::runtime_error
/// for logits that are no numbers.
std::int64_t ChooseToken(std::span<const double> logits, const Sampling& sampling,
                         std::uint64_t stream, std::uint64_t place);

}  // namespace troupe
