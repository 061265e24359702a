// A tokenizer.json of Hugging Face's library `tokenizers`, with a byte-pair model: text to tokens
// and back. Gives the library's tokens, with its option encode_special_tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/bpe/added_tokens.hpp"
#include "data/text/bpe/decoder.hpp"
#include "data/text/bpe/model.hpp"
#include "data/text/bpe/normalizer.hpp"
#include "data/text/bpe/pre_tokenizer.hpp"
#include "data/text/tokenizer.hpp"

namespace troupe::bpe {

/// Immutable, hence thread-safe.
class TokenizerFile {
 public:
  /// Reads `path`. Throws std::runtime_error, a line with file and place: the file cannot be read or
  /// is no tokenizer.json, or a part of it is not supported.
  explicit TokenizerFile(const std::string& path);

  /// Returns the tokens of `text`, with U+FFFD for what is not UTF-8. Special tokens in the text are
  /// text. `first`: the text begins the input, rather than following a special token. Throws
  /// PatternError for a text that takes the file's regular expressions too long.
  std::vector<TextToken> Encode(std::string_view text, bool first) const;
  /// Returns the text of `ids` without special tokens and ids that are no token.
  std::string Decode(std::span<const std::int64_t> ids) const;

  /// Returns the id of the added token `text`, or else of the model's.
  std::optional<std::uint32_t> Find(std::string_view text) const;
  /// Returns the id of the added token `text`.
  std::optional<std::uint32_t> FindAdded(std::string_view text) const;
  /// All ids are below it.
  std::uint32_t end() const { return end_; }
  /// The token that the file's post-processor puts before every text, if any.
  const std::optional<std::string>& leading_token() const { return leading_token_; }

 private:
  explicit TokenizerFile(const JsonNode& node);
  void SetAddedTokens(const JsonNode& node);

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  Model model_;
  Decoder decoder_;
  std::vector<AddedToken> added_;
  TokenFinder in_text_;        ///< added tokens that are found in the text as it is
  TokenFinder in_normalized_;  ///< those that are found in the normalized text
  std::unordered_map<std::uint32_t, std::size_t> added_by_id_;
  IdByText added_by_text_;
  std::optional<std::string> leading_token_;
  std::uint32_t end_ = 0;
};

}  // namespace troupe::bpe
