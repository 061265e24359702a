// Whether the durations of one run say something about another configuration.
#pragma once

#include <string>

#include "configs/config.hpp"

namespace troupe {

/// Why passes of `wanted` take other times than those of `run`: "language has tp 2 there, 4 here".
/// Empty: nothing that decides about a pass differs. Replicas, microbatches per step, the kind of the
/// schedule and what is stated of synthetic modules may: measured times are asked for.
std::string WhyOtherTimes(const Config& run, const Config& wanted);

}  // namespace troupe
