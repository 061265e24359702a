// The model of a tokenizer.json: byte-pair encoding. It joins the neighbours in a word whose pair
// comes first in the list of merges, until no pair is in the list. (Sennrich et al. 2016,
// arXiv:1508.07909)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/text/bpe/pair_table.hpp"
#include "data/text/bpe/text_part.hpp"
#include "data/text/bpe/vocabulary.hpp"
#include "data/text/tokenizer.hpp"

namespace troupe::bpe {

/// Memory that the words of one text share.
class MergeSpace;

/// Immutable, hence thread-safe.
class Model {
 public:
  /// Reads {"type": "BPE", ...}. `byte_level`: words are bytes, and the vocabulary is written in
  /// their letters; else words are characters. Throws std::runtime_error, a line with file and place.
  Model(const JsonNode& node, bool byte_level);

  /// Appends the tokens of `word`. O(n log n) for n bytes.
  void Encode(const TextPart& word, MergeSpace& space, std::vector<TextToken>& tokens) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  void ReadMerges(const JsonNode& merges);
  void ReadSymbols(const JsonNode& node);
  void SplitIntoSymbols(const TextPart& word, MergeSpace& space) const;
  void AddUnknown(const TextPart& word, std::uint32_t begin, std::uint32_t end,
                  MergeSpace& space) const;
  std::uint32_t IdOfCharacter(std::string_view character, char32_t code) const;

  bool byte_level_;
  Vocabulary vocabulary_;
  PairTable merges_;
  std::array<std::uint32_t, 256> byte_ids_{};  ///< by byte, or by ASCII character
  std::unordered_map<char32_t, std::uint32_t> character_ids_;
  bool byte_fallback_ = false;  ///< characters without a token become bytes
  std::array<std::uint32_t, 256> fallback_ids_{};
  std::uint32_t unknown_ = kNone;
  bool fuse_unknown_ = false;  ///< neighbours without a token become one
  IdByText whole_words_;       ///< words that are tokens, whatever the merges make of them
};

}  // namespace troupe::bpe
