// A data set in LLaVA's form: a list of rows beside the image files, as one JSON list or, in a file
// named *.jsonl, one row a line. docs/data.md describes the rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "configs/config.hpp"
#include "data/data_error.hpp"
#include "data/llava_row.hpp"

namespace troupe {

/// One data set; the image files are not opened.
struct LlavaSet {
  std::string file;
  std::vector<LlavaRow> rows;          ///< those with a fault too, so that places stay
  std::vector<DataFault> faults = {};  ///< in the order of the rows

  /// Path of an image of this set as it can be opened.
  std::string PathOf(const std::string& image) const;
  /// As RowName.
  std::string NameOf(const LlavaRow& row) const {
    return RowName(file, row.index, row.id, row.line);
  }
};

/// Reads `file`, all of its rows, whatever some of them hold. `encoders` say which fields hold
/// images, and which word in the text stands for one; every field is a path, a list of paths or
/// absent, and has as many files as the text has placeholders. Throws FaultError for a file that
/// cannot be opened.
LlavaSet ReadLlava(const std::string& file, const std::vector<InputConfig>& encoders);

/// A piece of a turn: text, or the place of an image.
struct TextPiece {
  std::string_view text;  ///< of a placeholder: the placeholder
  int encoder = -1;       ///< -1: text
};

/// Cuts `text` at the encoders' placeholders, the longest first where two begin at one place.
std::vector<TextPiece> SplitAtPlaceholders(std::string_view text,
                                           const std::vector<InputConfig>& encoders);

}  // namespace troupe
