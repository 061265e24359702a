// The formats of files that hold rows: a JSON list, JSON lines, WebDataset's tar archives, and Parquet.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/rows/llava_row.hpp"

namespace troupe {

/// Where a row lies in its file.
struct RowSpan {
  std::int64_t offset = 0;  ///< bytes
  std::int64_t size = 0;    ///< bytes
  std::int64_t line = 0;    ///< in a file with one row a line, from 1; else 0
};

/// A larger row is a fault.
inline constexpr std::int64_t kMaxRowBytes = std::int64_t{1} << 30;

/// An open file. Thread-safe.
class RowStore {
 public:
  virtual ~RowStore() = default;
  /// Returns the bytes of a row, for RowFormat::Read. Throws std::runtime_error with only the reason.
  virtual std::vector<std::uint8_t> Read(const RowSpan& span) const = 0;
};

/// Thread-safe.
class RowFormat {
 public:
  virtual ~RowFormat() = default;
  /// Calls `found` for each row of the file at `path`, in order, and holds none of them. Throws
  /// std::runtime_error, the reason as one line, where the rows that follow cannot be found.
  void Scan(const std::string& path, const std::function<void(const RowSpan&)>& found) const {
    ScanAfter(path, std::nullopt, found);
  }
  /// The same for the rows after `last`, which an earlier scan of the file has found. May throw if it
  /// cannot begin there; a scan of the whole file then says what is wrong with it.
  virtual void ScanAfter(const std::string& path, const std::optional<RowSpan>& last,
                         const std::function<void(const RowSpan&)>& found) const = 0;
  /// Opens a file to read its rows. Throws std::runtime_error, one line.
  virtual std::unique_ptr<const RowStore> Open(const std::string& path) const;
  /// Fills `row` from its bytes: `row.id` even if the rest cannot be read. Throws
  /// std::runtime_error with only the reason.
  virtual void Read(const SharedBytes& bytes, const RowOrigin& origin,
                    const std::vector<RowField>& fields, LlavaRow& row) const = 0;
  /// Whether the files that rows name lie in the file itself.
  virtual bool holds_items() const { return false; }
};

/// Returns a function that forwards to `found`, without the first call if `skip`. `found` must outlive it.
std::function<void(const RowSpan&)> SkipFirst(bool skip,
                                              const std::function<void(const RowSpan&)>& found);

/// Returns the format of a file: lines for *.jsonl, a tar archive for *.tar, Parquet for *.parquet,
/// else a list.
const RowFormat& FormatOfFile(const std::string& path);

const RowFormat& JsonList();
const RowFormat& JsonLines();
const RowFormat& TarShard();
/// Without Arrow, its Scan refuses every file.
const RowFormat& ParquetTable();

}  // namespace troupe
