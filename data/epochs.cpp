#include "data/epochs.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "data/rows/data_error.hpp"

namespace troupe {

std::int64_t StepsOfEpochs(double epochs, std::int64_t rows, std::int64_t batch,
                           std::int64_t done) {
  // 0.1 epochs of 30 rows are 3 samples, although the product is a little above.
  constexpr double kRounding = 1e-12;
  const double samples = std::ceil(epochs * static_cast<double>(rows) * (1.0 - kRounding));
  const double left = std::max(samples - static_cast<double>(done), 0.0);
  const double steps = std::ceil(left / static_cast<double>(batch));
  constexpr double kMost = 2'147'483'647.0;
  if (steps <= kMost) return static_cast<std::int64_t>(steps);
  throw DataError("run.epochs: expected at most 2147483647 steps, got more with " +
                  std::to_string(rows) + " rows and " + std::to_string(batch) +
                  " samples in a step");
}

Config WithSteps(Config config, std::int64_t rows) {
  if (config.run.epochs) {
    config.run.steps = StepsOfEpochs(*config.run.epochs, rows, config.global_batch());
  }
  return config;
}

}  // namespace troupe
