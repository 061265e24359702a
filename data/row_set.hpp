// Reads rows of many files one at a time. Memory holds the names of the files, not the rows.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/measured_file.hpp"
#include "data/rows/index_cache.hpp"
#include "data/rows/row_file.hpp"
#include "data/rows/shards.hpp"
#include "data/sample.hpp"
#include "layout/route.hpp"

namespace troupe {

/// How far the first reading of a set has come.
struct IndexProgress {
  std::int64_t files_done = 0;
  std::int64_t files = 0;  ///< that differ; links to one count once
  std::int64_t rows = 0;
  std::string waits_for = {};  ///< when a wait begins: the file that another job indexes
};

struct SetTerms {
  FileDepth depth = FileDepth::kNone;  ///< of files that are indexed now
  std::string cache;                   ///< folder of indexes
  std::int64_t cache_bytes = std::int64_t{20} << 30;
  std::string format_key;  ///< FormatKey(config): what the facts of a row depend on
  /// Sets of fewer bytes are indexed at each start, in memory.
  std::int64_t small_bytes = std::int64_t{32} << 20;
  std::function<void(const IndexProgress&)> progress = {};
};

/// The index that runs use for a file of a large set.
struct StoredIndex {
  std::string path;
  std::string digest;  ///< of the rows of the file
};
/// Returns null if the cache has none. Throws std::runtime_error if the file or the cache cannot be read.
std::optional<StoredIndex> FindIndex(const std::string& path, std::size_t num_encoders,
                                     const SetTerms& terms);

/// A row and where it comes from.
struct StoredRow {
  RowOrigin origin;
  LlavaRow row;
  /// "data/train.json: row 7 (id "a7")".
  std::string name() const { return RowName(origin.file, row.Fault(FaultKind::kRow, "")); }
};

/// The file of a fault.
struct FaultPlace {
  const std::string& file;
  std::size_t source = 0;
  std::int64_t first_row = 0;  ///< the number that the set gives to the file's first row
};
using ReportFault = std::function<void(const DataFault& fault, const FaultPlace& place)>;

/// Thread-safe. Rows are numbered consecutively across the files.
class RowSet {
 public:
  /// Opens the files that each of `sources` stands for. Indexes those that have none, on all cores.
  /// Reports faults in the order of the rows.
  /// Throws DataError if a source has no files or the cache fails.
  RowSet(const std::vector<std::string>& sources, std::shared_ptr<const SampleFormat> format,
         const SetTerms& terms, const ReportFault& report);
  RowSet() = default;

  std::int64_t num_rows() const { return sums_.rows; }
  const RowSums& sums() const { return sums_; }
  /// Rows of each source.
  const std::vector<Interval>& sources() const { return sources_; }
  /// Rows of each file of a source.
  std::vector<std::int64_t> SizesOf(std::size_t source) const;
  std::size_t num_files() const { return files_.size(); }
  /// Folder of the indexes; "" if they are in memory.
  std::string cache_folder() const { return cache_ == nullptr ? "" : cache_->folder(); }
  /// Digest of the sources, the names of their files and the rows in them: 16 digits.
  const std::string& digest() const { return digest_; }
  /// The same, with what is known of each row.
  const std::string& facts_digest() const { return facts_digest_; }

  RowFacts FactsOf(std::int64_t row) const;
  /// Throws FaultError.
  StoredRow Read(std::int64_t row) const;

 private:
  struct File {
    Shard shard;
    std::string key;  ///< of its index
    std::int64_t first_row = 0;
    std::int64_t num_rows = 0;
    std::string digest = {};                     ///< of its index
    std::shared_ptr<const RowIndex> index = {};  ///< in memory; else it lies in the cache
  };
  /// What is known of files with one key.
  struct Indexed {
    RowSums sums;
    std::string digest;
    std::string facts_digest;
    std::vector<DataFault> faults;
    std::shared_ptr<const RowIndex> index = {};  ///< in memory
  };

  void LookAtFiles(const std::vector<std::string>& sources, const SetTerms& terms);
  Indexed IndexFile(const File& file, const SetTerms& terms, int threads,
                    const std::function<void(std::int64_t)>& measured,
                    const std::function<void(const std::string&)>& waits) const;
  std::map<std::string, Indexed> IndexAll(const SetTerms& terms) const;
  /// Measures the bad rows of a file again and returns their faults; none if a row has become good.
  std::vector<DataFault> FaultsOf(const File& file, const RowIndex& index) const;
  const File& At(std::int64_t row) const;
  std::shared_ptr<const RowFile> Opened(const File& file) const;

  std::vector<File> files_;
  std::vector<std::size_t> source_ends_;  ///< files up to and including each source
  std::vector<Interval> sources_;
  RowSums sums_;
  std::string digest_;
  std::string facts_digest_;
  FileDepth depth_ = FileDepth::kNone;
  std::shared_ptr<const SampleFormat> format_;
  std::shared_ptr<const IndexCache> cache_;  ///< null: all indexes are in memory
  struct Open {
    std::mutex mutex;
    std::list<std::pair<const File*, std::shared_ptr<const RowFile>>> latest;
  };
  std::unique_ptr<Open> open_ = std::make_unique<Open>();
};

}  // namespace troupe
