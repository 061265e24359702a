// The place in the training data up to which a run has read.
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// With data.packing: a window of the order of training.
struct PackWindow {
  std::int64_t number = 0;
  std::int64_t first_pack = 0;  ///< counted through all windows
  friend bool operator==(const PackWindow&, const PackWindow&) = default;
};

/// The samples of a run are in an endless order (data/row_source.hpp), which depends on neither
/// layout nor global batch. A run has read a prefix of it.
struct DataPosition {
  std::int64_t place = 0;  ///< of the next sample, with data.packing of the next pack
  /// With data.group_by: samples among which rows were grouped, the global batch of the run's first
  /// start.
  std::int64_t group = 0;
  std::int64_t rows = 0;   ///< in the training list; an epoch has as many samples
  std::string digest;      ///< of the training list; empty: the run reads none
  PackWindow window = {};  ///< of the next pack
  friend bool operator==(const DataPosition&, const DataPosition&) = default;
};

}  // namespace troupe
