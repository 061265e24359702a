// A file of rows that is open, with its index.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "data/rows/row_format.hpp"
#include "data/rows/row_index.hpp"

namespace troupe {

/// Thread-safe.
class RowFile {
 public:
  /// Opens the file. Throws FaultError.
  RowFile(RowOrigin origin, std::shared_ptr<const RowIndex> index);
  /// The same without an index: only ReadFirst can be called.
  explicit RowFile(RowOrigin origin) : RowFile(std::move(origin), nullptr) {}

  const RowOrigin& origin() const { return origin_; }
  const RowIndex& index() const { return *index_; }

  /// Throws FaultError if the index is damaged.
  RowFacts FactsOf(std::int64_t row) const;
  /// Reads a row, and compares its bytes with the index. Throws FaultError.
  LlavaRow Read(std::int64_t row, const std::vector<RowField>& fields) const;
  /// Reads a row of which `facts` has only the place. Sets `facts.sum` after reading its bytes and before
  /// parsing them.
  LlavaRow ReadFirst(std::int64_t row, const std::vector<RowField>& fields, RowFacts& facts) const;

 private:
  SharedBytes BytesOf(const LlavaRow& row, const RowSpan& span) const;
  void Parse(const SharedBytes& bytes, const std::vector<RowField>& fields, LlavaRow& row) const;

  RowOrigin origin_;
  const RowFormat& format_;
  std::shared_ptr<const RowIndex> index_;
  std::shared_ptr<const RowStore> reader_;
};

}  // namespace troupe
