// Checks every file of a data set before a run needs it, on several threads.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "data/image.hpp"
#include "data/llava.hpp"
#include "data/sample.hpp"

namespace troupe {

enum class FileDepth : std::uint8_t {
  kNone,    ///< not at all
  kHeader,  ///< type, size, first bytes and header of the file
  kDecode   ///< all of it
};

/// Images of one format.
struct FormatCount {
  std::int64_t count = 0;
  std::optional<ImageFacts> smallest;  ///< by pixels
  std::optional<ImageFacts> largest;
};

struct FileSurvey {
  std::int64_t num_files = 0;                         ///< including those with a fault
  std::array<FormatCount, kNumImageFormats> formats;  ///< for images
};

/// Checks the files of the usable rows, each with the preprocessor of its field. Calls `report` for
/// each fault, in the order of the rows, from one thread at a time. Holds the faults of only a few
/// rows at a time.
FileSurvey CheckFiles(const LlavaSet& set, const SampleFormat& format, FileDepth depth,
                      const std::function<void(const DataFault&)>& report);

}  // namespace troupe
