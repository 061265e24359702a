// A data set that has been read and measured. `troupe data check`, `troupe doctor` and the start of
// a run share this one pass over rows and files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/check_files.hpp"
#include "data/llava.hpp"
#include "data/sample.hpp"
#include "data/skipped_rows.hpp"

namespace troupe {

struct CountedSet {
  LlavaSet set;
  std::vector<std::int64_t> num_labels;  ///< by row; 0 for an unusable row
  std::int64_t num_cut = 0;              ///< rows whose end does not fit the context
  std::int64_t num_without_files = 0;    ///< usable rows without files
  std::int64_t most_tokens = 0;          ///< of a usable row, before it is cut
  FileSurvey files;
  SkippedRows skipped;
};

/// Reads `file`, builds every row as `format` defines and checks its files. Calls `report` for
/// every fault: first those of rows, then those of files, both in the order of the rows. A file
/// that cannot be read is also a fault.
CountedSet CountSet(const std::string& file, const SampleFormat& format, FileDepth depth,
                    const std::function<void(const DataFault&)>& report);

}  // namespace troupe
