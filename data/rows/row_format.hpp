// The formats of files that hold rows: a JSON list, JSON lines, and WebDataset's tar archives.
#pragma once

#include <cstdint>
#include <functional>
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

/// Thread-safe.
class RowFormat {
 public:
  virtual ~RowFormat() = default;
  /// Calls `found` for each row of the file at `path`, in order, and holds none of them. Throws
  /// std::runtime_error, the reason as one line, where the rows that follow cannot be found.
  virtual void Scan(const std::string& path,
                    const std::function<void(const RowSpan&)>& found) const = 0;
  /// Fills `row` from its bytes: `row.id` even if the rest cannot be read. Throws
  /// std::runtime_error with only the reason.
  virtual void Read(const SharedBytes& bytes, const RowOrigin& origin,
                    const std::vector<RowField>& fields, LlavaRow& row) const = 0;
  /// Whether the files that rows name lie in the file itself.
  virtual bool holds_items() const { return false; }
};

/// Returns the format of a file: lines for *.jsonl, a tar archive for *.tar, else a list.
const RowFormat& FormatOfFile(const std::string& path);

const RowFormat& JsonList();
const RowFormat& JsonLines();
const RowFormat& TarShard();

}  // namespace troupe
