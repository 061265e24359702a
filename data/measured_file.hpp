// Reads a file of rows once: finds the rows, measures their samples and checks their files. `troupe data`,
// `troupe doctor` and the start of a run share this pass.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/images/image.hpp"
#include "data/rows/row_index.hpp"
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

  void Add(const ImageFacts& facts);
  void Add(const FormatCount& others);
};

struct FileSurvey {
  std::int64_t num_files = 0;                         ///< including those with a fault
  std::array<FormatCount, kNumImageFormats> formats;  ///< for images
};

/// How a file of rows is read the first time.
struct MeasureTerms {
  FileDepth depth = FileDepth::kNone;
  int threads = 1;                                       ///< that measure; headers take more
  std::function<void(std::int64_t rows)> measured = {};  ///< called as rows are done, by any thread
  /// How often a partial index is saved.
  std::chrono::milliseconds keep_every{5000};
};

struct MeasuredFile {
  RowSums sums;
  FileSurvey files;   ///< excludes rows that an earlier job measured
  bool whole = true;  ///< false: the rows after a fault of the file are unknown
};

/// Finds the rows of a file, builds each as `format` defines, checks the files that it names, and fills
/// `index`, which may be partial. Calls `report` for every fault, in the order of the rows, from one thread at
/// a time. A file that cannot be read is a fault, too.
MeasuredFile MeasureFile(const RowOrigin& origin, const SampleFormat& format,
                         const MeasureTerms& terms, RowIndex& index,
                         const std::function<void(const DataFault&)>& report);

/// Measures the bad rows before row `end` again and adds their faults to `faults`. Returns false if one has become
/// good.
bool AddFaultsOf(const RowOrigin& origin, const SampleFormat& format, FileDepth depth,
                 std::int64_t end, const RowIndex& index, std::vector<DataFault>& faults);

}  // namespace troupe
