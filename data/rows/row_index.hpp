// The index of a file of rows: the place of each row, and the sizes of its sample. A run reads any row
// without those before it. The index is a file, too: memory holds only its header. A job that is killed leaves
// a partial index. The next job continues it.
//
//   header   256 bytes: number of encoders, sums, digests; in a partial index: the rows found and measured
//   records  one per row: offset 8, size 4, line 4, CRC-32 4, tokens 4, labels 4, flags 1 byte, a checksum
//            of the record and its row number 3 bytes, then 4 bytes per encoder, the total length of its items;
//            little endian
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/rows/row_format.hpp"

namespace troupe {

/// The facts that an index stores about a row.
struct RowFacts {
  RowSpan span;
  std::uint32_t sum = 0;    ///< CRC-32 of its bytes
  std::int64_t tokens = 0;  ///< without the end that is cut; 0 for a row that has no sample
  std::int64_t labels = 0;  ///< likewise
  bool usable = false;      ///< false: it has a fault
  bool cut = false;         ///< its end does not fit the context
  std::vector<std::int64_t> lengths;  ///< by encoder: total length of its items
};

/// Sums over the rows of a file.
struct RowSums {
  std::int64_t rows = 0;
  std::int64_t bad = 0;            ///< not usable
  std::int64_t cut = 0;            ///< whose end does not fit the context
  std::int64_t without_files = 0;  ///< of usable rows
  std::int64_t with_labels = 0;    ///< usable rows that have any
  /// Rows that are bad only because of their items, and those of them that have labels.
  std::int64_t replaceable = 0;
  std::int64_t replaceable_with_labels = 0;
  std::int64_t tokens = 0;
  std::int64_t most_tokens = 0;  ///< of a usable row, before it is cut
  RowSums& operator+=(const RowSums& other);
};

/// The progress of a partial index.
struct IndexPart {
  RowSums sums;               ///< `rows` counts the rows found; the other sums are of measured rows
  std::int64_t measured = 0;  ///< the first rows, whose facts are known
  bool has_all_places = false;  ///< the file has no further rows
};

/// An index that cannot be made, written or read; one line.
struct IndexError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Get and Set are thread-safe; Append, Flush and Finish are not. All throw IndexError.
class RowIndex {
 public:
  /// An empty index in memory.
  explicit RowIndex(std::size_t num_encoders);
  /// Takes ownership of the open file `file`. Continues its partial index, or begins a new one.
  RowIndex(int file, std::size_t num_encoders);
  /// Opens one that was finished. Throws if it is incomplete, or was made for another number of encoders.
  RowIndex(const std::string& path, std::size_t num_encoders);
  ~RowIndex();
  RowIndex(const RowIndex&) = delete;
  RowIndex& operator=(const RowIndex&) = delete;

  /// Appends a row of which only the place is known.
  void Append(const RowSpan& span);
  /// Writes the rows that have been appended. Call it before Set or Get.
  void Flush();
  /// Writes all facts of a row.
  void Set(std::int64_t row, const RowFacts& facts);
  /// Returns what the file had when it was opened.
  const IndexPart& part() const { return part_; }
  /// Saves the rows so far, so that another job can continue. Does nothing in memory.
  void Keep(const IndexPart& part);
  /// Removes all rows.
  void Clear();
  /// Writes the sums and the digests.
  void Finish(const RowSums& sums);

  /// Rows that have been appended.
  std::int64_t num_rows() const { return sums_.rows; }
  const RowSums& sums() const { return sums_; }
  /// SHA-256 of the places and sums of all rows: 64 digits.
  const std::string& digest() const { return digest_; }
  /// The same of all facts.
  const std::string& facts_digest() const { return facts_digest_; }
  /// Throws if the row's record is damaged.
  RowFacts Get(std::int64_t row) const;
  /// Returns the place alone. Does not check the record: the places of a partial index were checked when it was
  /// opened, and a job that was killed may have written half of the other facts.
  RowSpan SpanOf(std::int64_t row) const;

 private:
  std::size_t record_size() const { return 32 + 4 * num_encoders_; }
  /// Returns where the record of a row begins in the file.
  std::int64_t OffsetOf(std::int64_t row) const;
  /// Checksums of the first records: of the places of `rows` of them, and of all facts of `measured`.
  struct RecordSums {
    std::int64_t rows = 0;
    std::uint32_t places = 0;
    std::int64_t measured = 0;
    std::uint32_t facts = 0;
    friend bool operator==(const RecordSums&, const RecordSums&) = default;
  };
  /// Returns what the open file has; none if that is not an index, or damaged.
  IndexPart PartInFile();
  /// Extends `record_sums_` to these numbers of records.
  void SumRecords(std::int64_t rows, std::int64_t measured);
  /// Calls `use` with each of records [begin, end).
  void ForRecords(std::int64_t begin, std::int64_t end,
                  const std::function<void(std::span<const std::byte> record)>& use) const;
  void WriteHeader(std::span<const std::byte> header) const;
  void Write(std::int64_t offset, std::span<const std::byte> bytes) const;
  void Read(std::int64_t offset, std::span<std::byte> bytes) const;
  /// Of the first `of_each` bytes of each of the first records, without their checksums.
  std::string DigestOfRecords(std::int64_t rows, std::size_t of_each) const;

  int file_ = -1;
  std::size_t num_encoders_ = 0;
  bool in_memory_ = false;
  IndexPart part_;
  RecordSums record_sums_;
  std::vector<std::byte> appended_;  ///< records that are not written yet
  std::int64_t num_written_ = 0;
  RowSums sums_;
  std::string digest_;
  std::string facts_digest_;
};

}  // namespace troupe
