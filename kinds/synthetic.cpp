#include "kinds/synthetic.hpp"

namespace troupe {

static std::vector<ModelKey> SyntheticKeys() {
  return {
      {"forward_ms", &SyntheticConfig::forward_ms, kNotNegative, Unit{"ms"},
       "Time of a forward pass of one stage and microbatch; virtual stages share it."},
      {"backward_ms", &SyntheticConfig::backward_ms, kNotNegative, Unit{"ms"},
       "Time of a backward pass of one stage and microbatch; virtual stages share it."},
      {"weight_share", &SyntheticConfig::weight_share, Range{.low = 0, .high = 1},
       "Share of `backward_ms` that the gradients of the weights take, where a schedule runs them "
       "as passes of their own."},
      {"time_sigma", &SyntheticConfig::time_sigma, Range{.low = 0, .high = 2}, kAddedLater,
       "Spread of these times over samples, which are log-normal: a pass takes its time multiplied "
       "by the mean factor of its samples. A sample has the same factor on every stage of a "
       "module, "
       "and in every run of one seed. In virtual time all have the factor 1."},
      {"hidden", &SyntheticConfig::hidden, kCount, "Width of a boundary row."},
      {"rows_per_sample", &SyntheticConfig::rows_per_sample, kCountOrNone,
       "Boundary rows of each sample."},
      {"experts", &SyntheticConfig::experts, kCountOrNone, kAddedLater,
       "Experts, a multiple of ep: replicas that share some run their passes in lock step. They "
       "exchange "
       "nothing."},
  };
}

const ModuleKind kSynthetic = {
    .word = "synthetic",
    .meaning =
        "computes nothing and takes a stated time, only together with other synthetic modules",
    .other_words = {},
    .similar_words = {},
    .make = [] { return Model(SyntheticConfig()); },
    .keys = SyntheticKeys};

}  // namespace troupe
