// Reads a data set in LLaVA's form: a list of rows next to the files that they name. The list is
// JSON, or one row a line in a file named *.jsonl. docs/data.md describes the rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "configs/config.hpp"
#include "data/data_error.hpp"
#include "data/llava_row.hpp"

namespace troupe {

/// One data set. Does not open the files that its rows name.
struct LlavaSet {
  std::string file;
  std::vector<LlavaRow> rows;          ///< includes rows with a fault, so that places stay
  std::vector<DataFault> faults = {};  ///< in the order of the rows
  std::string folder = {};             ///< of the files that rows name; "": that of `file`

  /// Returns the path at which a file that a row names can be opened.
  std::string PathOf(const std::string& name) const;
};

/// Reads all rows of `file`, including those with faults. In a row, each of `fields` is a path, a
/// list of paths or absent, and has as many files as the text has placeholders. Throws FaultError
/// if `file` cannot be opened.
LlavaSet ReadLlava(const std::string& file, const std::vector<RowField>& fields);

/// A part of a turn: text, or the place of an item.
struct TextPiece {
  std::string_view text;  ///< for a placeholder: the placeholder
  int field = -1;         ///< -1: text
};

/// Splits `text` at the placeholders of `fields`. If two begin at one place, the longer one counts.
std::vector<TextPiece> SplitAtPlaceholders(std::string_view text,
                                           const std::vector<RowField>& fields);

}  // namespace troupe
