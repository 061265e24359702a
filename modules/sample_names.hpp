// What the samples of a unit are called in the data set: for errors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "modules/stage_program.hpp"

namespace troupe {

/// Of sources whose samples have names.
class SampleNames {
 public:
  virtual ~SampleNames() = default;
  /// The ids of the samples that InputSource::Load brings for the same arguments, in row order;
  /// those that only fill a place have none. Thread-safe, and quick: nothing is loaded.
  virtual std::vector<std::string> NamesOf(const std::string& module, int dp, const Round& round,
                                           std::int64_t unit) const = 0;
};

}  // namespace troupe
