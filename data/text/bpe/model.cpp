#include "data/text/bpe/model.hpp"

#include <nlohmann/json.hpp>

#include "data/text/bpe/byte_letters.hpp"
#include "data/text/bpe/merge_space.hpp"
#include "data/text/bpe/utf8.hpp"
#include "layout/text.hpp"

namespace troupe::bpe {
namespace {

/// Returns the texts of the merge `pair`: "LEFT RIGHT" or, if a token holds a space, [LEFT, RIGHT].
std::pair<std::string, std::string> TextsOf(const JsonNode& pair) {
  if (!pair.IsText()) {
    if (pair.size() != 2) pair.Refuse("two tokens");
    return {pair.Item(0).Text(), pair.Item(1).Text()};
  }
  const std::string& text = pair.Text();
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    pair.Refuse("two tokens with a space between them");
  }
  return {text.substr(0, space), text.substr(space + 1)};
}

/// Refuses settings that no supported family uses.
void RequireUnset(const JsonNode& node, const std::string& key) {
  const auto found = node.Find(key);
  if (found && !(found->IsText() && found->Text().empty())) {
    found->Refuse("none: it is not supported");
  }
}

}  // namespace

Model::Model(const JsonNode& node, bool byte_level) : byte_level_(byte_level) {
  // Files of early versions have no type.
  if (const auto type = node.Find("type"); type && type->Text() != "BPE") {
    type->Refuse("BPE, the only model that is supported");
  }
  RequireUnset(node, "continuing_subword_prefix");
  RequireUnset(node, "end_of_word_suffix");
  if (const auto dropout = node.Find("dropout"); dropout && dropout->value() != 0) {
    dropout->Refuse("none: it is not supported");
  }
  vocabulary_ = Vocabulary(node.At("vocab"));
  ReadMerges(node.At("merges"));
  ReadSymbols(node);
}

void Model::ReadMerges(const JsonNode& merges) {
  const std::size_t count = merges.size();
  merges_ = PairTable(count);
  for (std::size_t rank = 0; rank < count; ++rank) {
    const JsonNode pair = merges.Item(rank);
    const auto [left, right] = TextsOf(pair);
    const auto left_id = vocabulary_.Find(left);
    const auto right_id = vocabulary_.Find(right);
    const auto joined_id = vocabulary_.Find(left + right);
    if (!left_id || !right_id || !joined_id) {
      pair.Refuse("two tokens of model.vocab that join to a third one");
    }
    merges_.Add(*left_id, *right_id, {static_cast<std::uint32_t>(rank), *joined_id});
  }
}

void Model::ReadSymbols(const JsonNode& node) {
  const auto id_of = [&](const std::string& text) {
    return vocabulary_.Find(text).value_or(kNone);
  };
  byte_fallback_ = node.FlagOr("byte_fallback", false) && !byte_level_;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<std::uint8_t>(byte);
    byte_ids_[byte] = byte_level_   ? id_of(LetterOf(value))
                      : byte < 0x80 ? id_of(std::string(1, static_cast<char>(value)))
                                    : kNone;
    fallback_ids_[byte] = id_of(Formatted("<0x%02X>", byte));
  }
  fuse_unknown_ = node.FlagOr("fuse_unk", false);
  if (const auto unknown = node.Find("unk_token")) {
    unknown_ = id_of(unknown->Text());
    if (unknown_ == kNone) unknown->Refuse("a token of model.vocab");
  }
  const bool takes_whole_words = node.FlagOr("ignore_merges", false);
  for (const auto& [text, id] : vocabulary_.ids()) {
    if (text.empty()) continue;
    if (!byte_level_ && CharacterAt(text, 0).bytes == text.size()) {
      character_ids_[CharacterAt(text, 0).code] = id;
    }
    if (!takes_whole_words) continue;
    const std::optional<std::string> word = byte_level_ ? BytesOf(text) : text;
    if (word) whole_words_.emplace(*word, id);
  }
}

void Model::Encode(const TextPart& word, MergeSpace& space, std::vector<TextToken>& tokens) const {
  if (word.text.empty()) return;
  const auto add = [&](std::uint32_t id, std::size_t begin, std::size_t end) {
    tokens.push_back({id, word.BeginOf(begin), word.EndOf(end - 1)});
  };
  if (!whole_words_.empty()) {
    const auto whole = whole_words_.find(word.text);
    if (whole != whole_words_.end()) return add(whole->second, 0, word.text.size());
  }
  space.Clear();
  SplitIntoSymbols(word, space);
  space.MergeAll(merges_);
  for (const Symbol& symbol : space.symbols()) {
    if (symbol.begin != symbol.end) add(symbol.id, symbol.begin, symbol.end);
  }
}

std::uint32_t Model::IdOfCharacter(std::string_view character, char32_t code) const {
  if (character.size() == 1) return byte_ids_[code];
  const auto found = character_ids_.find(code);
  return found == character_ids_.end() ? kNone : found->second;
}

void Model::SplitIntoSymbols(const TextPart& word, MergeSpace& space) const {
  const std::string_view text = word.text;
  const auto size = static_cast<std::uint32_t>(text.size());
  for (std::uint32_t at = 0; at < size;) {
    const Character character =
        byte_level_ ? Character{static_cast<std::uint8_t>(text[at]), 1} : CharacterAt(text, at);
    const std::uint32_t end = at + static_cast<std::uint32_t>(character.bytes);
    const std::uint32_t id = IdOfCharacter(text.substr(at, character.bytes), character.code);
    if (id != kNone) {
      space.Add(id, at, end);
    } else {
      AddUnknown(word, at, end, space);
    }
    at = end;
  }
}

void Model::AddUnknown(const TextPart& word, std::uint32_t begin, std::uint32_t end,
                       MergeSpace& space) const {
  const auto fallback = [&](std::uint32_t at) {
    return fallback_ids_[static_cast<std::uint8_t>(word.text[at])];
  };
  bool has_bytes = byte_fallback_;
  for (std::uint32_t at = begin; at < end; ++at) has_bytes = has_bytes && fallback(at) != kNone;
  if (has_bytes) {
    for (std::uint32_t at = begin; at < end; ++at) space.Add(fallback(at), at, at + 1);
  } else if (unknown_ == kNone) {
    return;  // the character is dropped, as the library does
  } else if (fuse_unknown_ && !space.empty() && space.last().id == unknown_ &&
             space.last().end == begin) {
    space.last().end = end;
  } else {
    space.Add(unknown_, begin, end);
  }
}

}  // namespace troupe::bpe
