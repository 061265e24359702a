// What a forward of a language model keeps for its backward, as malloc counts it.
#pragma once

#include <cstdint>
#include <memory>

#include "tests/torch/job.hpp"

namespace troupe {

inline constexpr std::int64_t kTokensOfEach = 48;

/// Samples of 48 tokens, without images.
Inputs LongInputs(std::int64_t samples);
/// The same with the table of their rows.
std::shared_ptr<const Inputs> LongData(std::int64_t samples);
Config LongLanguage(Layout layout, Precision precision);
/// Bytes that a layer keeps of a microbatch of 8 samples, on all ranks together.
double KeptByLayer(const Config& config);
/// The same as `check` estimates it.
double EstimatedOfLayer(const Config& config);

}  // namespace troupe
