// Rows of conversations in memory, and the places of items in their text. docs/data.md describes rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "configs/config.hpp"
#include "data/rows/data_error.hpp"
#include "data/rows/llava_row.hpp"

namespace troupe {

/// Rows in memory.
struct LlavaSet : RowOrigin {
  std::vector<LlavaRow> rows;
};

/// A part of a turn: text, or the place of an item.
struct TextPiece {
  std::string_view text;  ///< for a placeholder: the placeholder
  int field = -1;         ///< -1: text
};

/// Splits `text` at the placeholders of `fields`. If two begin at one place, the longer one counts.
std::vector<TextPiece> SplitAtPlaceholders(std::string_view text,
                                           const std::vector<RowField>& fields);

}  // namespace troupe
