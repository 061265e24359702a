// The words of every prompt format.
#pragma once

#include <string_view>
#include <vector>

#include "data/text/prompt.hpp"

namespace troupe {

/// A piece of a turn: words of the format, a special token, or the place of the turn's own text.
struct PromptPiece {
  enum class Kind { kWords, kSpecial, kBos, kEos, kTurn };
  Kind kind = Kind::kWords;
  std::string_view text = {};
  bool learned = false;
};

/// Where an item stands whose turn holds no other one.
enum class ItemPlace {
  kAsWritten,
  kAlone,           ///< the turn's text is dropped
  kFirstLine,       ///< before the text, with a line end after it
  kFirstLineMoved,  ///< the same, unless the text begins with the item
};

struct PromptFormat {
  PromptKind kind;
  std::string_view word;  ///< of data.prompt
  std::vector<PromptPiece> beginning = {};
  std::vector<PromptPiece> system = {};
  std::vector<PromptPiece> question = {};
  std::vector<PromptPiece> answer = {};
  std::string_view system_text = {};  ///< "": none
  ItemPlace items = ItemPlace::kAsWritten;
  bool strips = false;       ///< white space at the ends of a turn
  bool parts_turns = false;  ///< no token joins two turns
  std::string_view always_learned = {};
};

const PromptFormat& PromptFormatOf(PromptKind kind);
const std::vector<PromptFormat>& PromptFormats();

}  // namespace troupe
