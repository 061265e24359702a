// A data set in LLaVA's form: a JSON list of {id, image, conversations} beside the image files.
// data/README.md describes it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "configs/config.hpp"

namespace troupe {

/// A data set that cannot be used. One line: file, row, id, reason.
struct DataError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One turn of a conversation.
struct Turn {
  bool answer = false;  ///< said by the model ("gpt"), not by the reader ("human")
  std::string text;
};

/// One sample as it stands in the file.
struct LlavaRow {
  std::int64_t index = 0;  ///< place in the file, from 0
  std::string id;
  /// By encoder, then in the order of its placeholders: paths relative to the JSON file's folder.
  std::vector<std::vector<std::string>> images;
  std::vector<Turn> turns;
};

/// One data set, checked; the image files are not opened.
struct LlavaSet {
  std::string file;
  std::vector<LlavaRow> rows;

  /// Path of an image of this set as it can be opened.
  std::string PathOf(const std::string& image) const;
  /// `FILE: row 3 (id "a7")`, the start of every error about a row.
  std::string NameOf(const LlavaRow& row) const;
};

/// Reads `file`. `encoders` say which fields hold images, and which word in the text stands for
/// one; every field is a path, a list of paths or absent, and has as many files as the text has
/// placeholders. Throws DataError.
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
