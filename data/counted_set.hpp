// A data set that has been read and measured. `troupe data check`, `troupe doctor` and the start of
// a run share this one pass over rows and files.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/fault_tally.hpp"
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

struct CountedSet {
  LlavaSet set;
  std::vector<std::int64_t> num_labels;  ///< by row; 0 for an unusable row
  std::vector<std::int64_t> num_tokens;  ///< by row, without the end that is cut; likewise
  std::vector<std::int64_t> lengths;     ///< by row, then by encoder: total length of the items
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
