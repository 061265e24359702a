// Epochs of training rows in steps.
#pragma once

#include <cstdint>

#include "configs/config.hpp"

namespace troupe {

/// Returns the number of steps of `batch` samples that read `rows` rows `epochs` times, after `done`
/// samples have been read. The end of
/// the last pass fills part of a step, which counts, as in Hugging Face's Trainer; unlike there, the
/// passes before it end within a step. Throws DataError for more than 2^31 - 1 steps.
std::int64_t StepsOfEpochs(double epochs, std::int64_t rows, std::int64_t batch,
                           std::int64_t done = 0);

/// Returns `config` with the steps that run.epochs means for `rows` used training rows; without
/// run.epochs as it is. Throws as StepsOfEpochs does.
Config WithSteps(Config config, std::int64_t rows);

}  // namespace troupe
