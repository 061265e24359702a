// Which rows of which samples a tensor has, and which of them each rank along cp and tp has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "layout/route.hpp"

namespace troupe {

/// Neighbouring rows of one sample that take the places of neighbouring tokens of it.
struct RowRun {
  std::int64_t sample = 0;  ///< its number
  std::int64_t first = 0;   ///< its number among all rows of the sample
  std::int64_t count = 0;
  std::int64_t place = -1;  ///< the token whose place the first one takes; -1: they take none
  friend bool operator==(const RowRun&, const RowRun&) = default;
};

/// Which samples the rows of a tensor belong to, in row order. Travels with every activation, so
/// that a row that arrives in the wrong place is noticed before it is trained on.
struct RowTable {
  std::vector<std::int64_t> samples;  ///< sample numbers: place in the microbatch (or window)
  std::vector<std::int64_t> rows;     ///< rows of each, zero included
  /// Tokens of each sample in the module that the rows go to. Set where an end of the edge cuts rows
  /// (plan/row_cuts.hpp).
  std::vector<std::int64_t> lengths = {};
  /// The rows in their order. Empty where no end of the edge cuts them: then they are all rows of each
  /// sample.
  std::vector<RowRun> runs = {};

  std::int64_t num_rows() const;
  friend bool operator==(const RowTable&, const RowTable&) = default;
};

/// Adds a row to runs, as a part of the last one where it continues that.
void AppendRow(std::int64_t sample, std::int64_t row, std::int64_t place,
               std::vector<RowRun>& runs);

/// The runs of a table, or of one without: all rows of each sample, without a place.
std::vector<RowRun> RunsOf(const RowTable& table);

/// The tokens of a causal sample of `length` that rank `part` of `parts` along cp has: of twice as
/// many chunks, one from the front and the one at the same distance from the end, so that all ranks
/// have as many pairs of a token and one before it. Either may be empty.
struct ContextChunks {
  Interval front;
  Interval back;
  std::int64_t size() const { return front.size() + back.size(); }
  bool Contains(std::int64_t token) const { return front.Contains(token) || back.Contains(token); }
};
ContextChunks ChunksOf(std::int64_t length, int parts, int part);

/// How a module cuts the rows of an edge over cp, and tp.
struct RowCut {
  enum class By : std::uint8_t {
    kItems,   ///< part of the rows of each item: PartOf
    kContext  ///< the rows whose tokens it has: ChunksOf
  };
  By by = By::kItems;
  int parts = 1;               ///< cp
  std::int64_t item_rows = 1;  ///< with kItems: rows of an item
  int slices = 1;              ///< with kContext: tp, where its ranks share the tokens of a part
  bool pads = true;            ///< likewise: with one part, samples are padded to the longest
};

/// The rows of `table` that `part` of a cut has, in the same order; all samples stay. With kContext,
/// rows without a place go where the one before them goes, so the table must have all rows of its
/// samples; it may then be cut by items. A table without runs gets them.
RowTable CutTable(const RowTable& table, const RowCut& cut, int part);

/// The tokens of some samples as the rows of a part: sample by sample, the front chunk before the back
/// one.
class PartTokens {
 public:
  /// Samples that have `lengths` tokens, by number.
  PartTokens(const std::map<std::int64_t, std::int64_t>& lengths, const RowCut& cut, int part);

  std::int64_t num_rows() const { return num_rows_; }
  /// The row of a token of the part. Throws std::out_of_range for an unknown sample.
  std::int64_t RowOf(std::int64_t sample, std::int64_t token) const;

 private:
  struct Sample {
    std::int64_t first_row = 0;
    ContextChunks chunks;
  };
  std::map<std::int64_t, Sample> samples_;
  std::int64_t num_rows_ = 0;
};

/// Of the rows that `part` of a cut by context has, those whose tokens are in a slice. `table` has all of
/// that part, and its lengths. Rows without a place go where the one before them goes.
RowTable SliceTable(const RowTable& table, const RowCut& cut, int part, int slice);

/// The samples of `table` that are in `held`, with their rows.
RowTable SamplesOf(const RowTable& table, const std::vector<Interval>& held);

/// Where the rows of `part`, which are some of those of `table`, are in its tensor, in order.
std::vector<Interval> PlacesOf(const RowTable& part, const RowTable& table);

/// The route of all rows between tensors that have the same rows, each once: by destination, then by
/// row there. Samples of the transfers are unset.
Route RouteOf(const std::vector<RowTable>& sources, const std::vector<RowTable>& destinations);

/// Rows of one of several tensors.
struct RowPiece {
  std::size_t tensor = 0;
  Interval rows;
  friend bool operator==(const RowPiece&, const RowPiece&) = default;
};

/// The rows of several tensors as one: by sample, then in the order that they have in the sample.
struct JoinedRows {
  RowTable table;
  std::vector<RowPiece> pieces;  ///< in the order of the joined rows
};
JoinedRows JoinTables(const std::vector<const RowTable*>& tables);

}  // namespace troupe
