// The place in the training data up to which a run has read.
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// The samples of a run are in an endless order (data/row_source.hpp), which depends on neither
/// layout nor global batch. A run has read a prefix of it.
struct DataPosition {
  std::int64_t place = 0;  ///< of the next sample, with data.packing of the next pack
  /// With data.group_by: samples among which rows were grouped, the global batch of the run's first
  /// start.
  std::int64_t group = 0;
  std::int64_t rows = 0;  ///< in the training list; an epoch has as many samples
  std::string digest;     ///< of the training list; empty: the run reads none
  friend bool operator==(const DataPosition&, const DataPosition&) = default;
};

}  // namespace troupe
