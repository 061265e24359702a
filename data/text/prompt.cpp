#include "data/text/prompt.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "data/rows/llava.hpp"
#include "data/text/prompt_table.hpp"

namespace troupe {
namespace {

using Kind = PromptPart::Kind;
using Pieces = std::vector<PromptPiece>;

/// Returns the length of the white space with which `text` begins, 0 if it begins with none. These
/// are the characters that Python's str.isspace() accepts.
std::size_t SpaceAt(std::string_view text) {
  const auto is_ascii_space = [](char c) {
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
  };
  if (text.empty()) return 0;
  if (is_ascii_space(text.front())) return 1;
  for (const std::string_view space :
       {"\xc2\x85", "\xc2\xa0", "\xe1\x9a\x80", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf",
        "\xe2\x81\x9f", "\xe3\x80\x80"}) {
    if (text.starts_with(space)) return space.size();
  }
  // U+2000 to U+200A
  const bool in_row = text.size() >= 3 && text.starts_with("\xe2\x80") &&
                      static_cast<unsigned char>(text[2]) <= 0x8a;
  return in_row ? 3 : 0;
}

std::size_t SpaceBefore(std::string_view text) {
  for (const std::size_t bytes : {1U, 2U, 3U}) {
    if (text.size() < bytes) break;
    const std::string_view last = text.substr(text.size() - bytes);
    if (SpaceAt(last) == bytes) return bytes;
  }
  return 0;
}

/// Collects the parts of a conversation.
class PromptWriter {
 public:
  PromptWriter(const PromptFormat& format, const std::vector<RowField>& fields)
      : format_(format), fields_(fields) {
    AddPieces(format.beginning, {}, /*answer=*/false);
  }

  void AddTurn(const Pieces& pieces, std::string_view text, bool answer) {
    begins_anew_ = format_.parts_turns;
    AddPieces(pieces, text, answer);
  }

  /// What precedes the text of an answer. A space before it is the answer's: most tokenizers have
  /// one token for a space and the word after it.
  void OpenAnswer() {
    begins_anew_ = format_.parts_turns;
    Pieces before(format_.answer.begin(),
                  std::ranges::find(format_.answer, PromptPiece::Kind::kTurn, &PromptPiece::kind));
    for (PromptPiece& piece : before) {
      if (piece.text == " ") piece.text = {};
    }
    AddPieces(before, {}, /*answer=*/true);
  }

  std::vector<PromptPart> Finish() && { return std::move(parts_); }

 private:
  void AddPieces(const Pieces& pieces, std::string_view text, bool answer) {
    for (const PromptPiece& piece : pieces) {
      switch (piece.kind) {
        case PromptPiece::Kind::kWords:
          AddText(piece.text, piece.learned, /*answer=*/false);
          break;
        case PromptPiece::Kind::kTurn:
          AddTurnText(text, piece.learned, answer);
          break;
        case PromptPiece::Kind::kSpecial:
          Add({.kind = Kind::kSpecial, .text = std::string(piece.text), .learned = piece.learned});
          break;
        case PromptPiece::Kind::kBos:
          Add({.kind = Kind::kBos});
          break;
        case PromptPiece::Kind::kEos:
          Add({.kind = Kind::kEos, .learned = piece.learned});
          break;
      }
    }
  }

  void AddTurnText(std::string_view text, bool learned, bool answer) {
    std::vector<TextPiece> pieces = SplitAtPlaceholders(text, fields_);
    const auto is_item = [](const TextPiece& piece) { return piece.field >= 0; };
    const auto num_items = std::ranges::count_if(pieces, is_item);
    if (format_.items == ItemPlace::kAlone && !answer) {
      std::erase_if(pieces, [&](const TextPiece& piece) { return !is_item(piece); });
    } else if (num_items == 1 && MovesItem(pieces.front())) {
      return AddFirstLine(pieces, learned, answer);
    }
    if (format_.strips && !pieces.empty()) Strip(pieces);
    for (const TextPiece& piece : pieces) {
      if (is_item(piece)) {
        Add({.kind = Kind::kItem, .field = piece.field});
      } else {
        AddText(piece.text, learned, answer);
      }
    }
  }

  bool MovesItem(const TextPiece& first) const {
    return format_.items == ItemPlace::kFirstLine ||
           (format_.items == ItemPlace::kFirstLineMoved && first.field < 0);
  }

  /// The item, a line end, and the text without the item.
  void AddFirstLine(const std::vector<TextPiece>& pieces, bool learned, bool answer) {
    std::string text;
    for (const TextPiece& piece : pieces) {
      if (piece.field >= 0) {
        Add({.kind = Kind::kItem, .field = piece.field});
      } else {
        text += piece.text;
      }
    }
    const std::string_view stripped = Stripped(text);
    if (!stripped.empty()) AddText("\n" + std::string(stripped), learned, answer);
  }

  static void Strip(std::vector<TextPiece>& pieces) {
    TextPiece& first = pieces.front();
    while (first.field < 0 && SpaceAt(first.text) > 0)
      first.text.remove_prefix(SpaceAt(first.text));
    TextPiece& last = pieces.back();
    while (last.field < 0 && SpaceBefore(last.text) > 0) {
      last.text.remove_suffix(SpaceBefore(last.text));
    }
  }

  void AddText(std::string_view text, bool learned, bool answer) {
    if (text.empty()) return;
    Add({.text = std::string(text),
         .learned = learned,
         .answer = answer,
         .begins_anew = begins_anew_});
  }

  void Add(PromptPart part) {
    parts_.push_back(std::move(part));
    begins_anew_ = false;
  }

  const PromptFormat& format_;
  const std::vector<RowField>& fields_;
  std::vector<PromptPart> parts_;
  bool begins_anew_ = false;
};

/// The plain format knows one caption of at least one item.
void RequireCaption(const std::vector<Turn>& turns, const std::vector<RowField>& fields) {
  const bool is_pair = turns.size() == 2 && !turns[0].answer && turns[1].answer;
  const auto has_item = [&](const Turn& turn) {
    return std::ranges::any_of(SplitAtPlaceholders(turn.text, fields),
                               [](const TextPiece& piece) { return piece.field >= 0; });
  };
  if (is_pair && has_item(turns[0])) return;
  throw std::runtime_error(
      "data.prompt = \"plain\": expected a question with a placeholder and its answer, got " +
      std::string(is_pair ? "a question without one" : std::to_string(turns.size()) + " turns"));
}

}  // namespace

std::optional<PromptKind> PromptOf(std::string_view word) {
  const auto found = std::ranges::find(PromptFormats(), word, &PromptFormat::word);
  if (found == PromptFormats().end()) return std::nullopt;
  return found->kind;
}

std::string_view WordOf(PromptKind kind) { return PromptFormatOf(kind).word; }

std::vector<PromptPart> PromptParts(PromptKind kind, const std::vector<Turn>& turns,
                                    const std::vector<RowField>& fields) {
  const PromptFormat& format = PromptFormatOf(kind);
  if (kind == PromptKind::kPlain) RequireCaption(turns, fields);
  PromptWriter writer(format, fields);
  const bool has_system = !turns.empty() && turns.front().system;
  if (!has_system && !format.system_text.empty()) {
    writer.AddTurn(format.system, format.system_text, /*answer=*/false);
  }
  for (const Turn& turn : turns) {
    if (turn.open) {
      writer.OpenAnswer();
      continue;
    }
    writer.AddTurn(turn.system   ? format.system
                   : turn.answer ? format.answer
                                 : format.question,
                   turn.text, turn.answer);
  }
  return std::move(writer).Finish();
}

std::vector<std::string> SpecialTokensOf(PromptKind kind) {
  const PromptFormat& format = PromptFormatOf(kind);
  std::vector<std::string> tokens;
  for (const Pieces* pieces : {&format.beginning, &format.answer}) {
    for (const PromptPiece& piece : *pieces) {
      if (piece.kind == PromptPiece::Kind::kSpecial) tokens.emplace_back(piece.text);
    }
  }
  return tokens;
}

AnswerEnd AnswerEndOf(PromptKind kind) {
  const Pieces& answer = PromptFormatOf(kind).answer;
  const auto turn = std::ranges::find(answer, PromptPiece::Kind::kTurn, &PromptPiece::kind);
  const PromptPiece& end = *std::next(turn);
  if (end.kind == PromptPiece::Kind::kEos) return {};
  return end.kind == PromptPiece::Kind::kSpecial ? AnswerEnd{.special = std::string(end.text)}
                                                 : AnswerEnd{.text = std::string(end.text)};
}

std::optional<std::string> AlwaysLearned(PromptKind kind) {
  const std::string_view text = PromptFormatOf(kind).always_learned;
  if (text.empty()) return std::nullopt;
  return std::string(text);
}

std::string_view Stripped(std::string_view text) {
  while (SpaceAt(text) > 0) text.remove_prefix(SpaceAt(text));
  while (SpaceBefore(text) > 0) text.remove_suffix(SpaceBefore(text));
  return text;
}

}  // namespace troupe
