// A data set that has been read and measured: the one pass over rows and images that `troupe data
// check`, `troupe doctor` and the start of a run share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/check_images.hpp"
#include "data/llava.hpp"
#include "data/sample.hpp"
#include "data/skipped_rows.hpp"

namespace troupe {

struct CountedSet {
  LlavaSet set;
  std::vector<std::int64_t> num_labels;  ///< by row; 0 for one that cannot be used
  std::int64_t num_cut = 0;              ///< rows whose end does not fit the context
  std::int64_t num_without_images = 0;   ///< usable rows
  std::int64_t most_tokens = 0;          ///< of a usable row, before it is cut
  ImageSurvey images;
  SkippedRows skipped;
};

/// Reads `file`, builds every row as `format` says and checks its images. `report` gets every
/// fault: those of rows first, then those of images, both in the order of the rows. A file that
/// cannot be read is a fault, too.
CountedSet CountSet(const std::string& file, const SampleFormat& format, ImageDepth depth,
                    const std::function<void(const DataFault&)>& report);

}  // namespace troupe
