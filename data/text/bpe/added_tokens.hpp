// The added tokens of a tokenizer.json: texts that are one token wherever they stand, and special
// tokens, which only prompt formats insert.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/text/bpe/json_node.hpp"
#include "data/text/bpe/text_part.hpp"

namespace troupe::bpe {

struct AddedToken {
  std::uint32_t id = 0;
  std::string text;
  bool special = false;      ///< text of a user is never taken for it
  bool single_word = false;  ///< not inside a word
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< takes the white space after it
  bool normalized = true;    ///< found in the normalized text
};

/// Reads the list "added_tokens". Throws std::runtime_error, a line with file and place.
std::vector<AddedToken> ReadAddedTokens(const JsonNode& list);

/// Finds added tokens in texts: at each place the longest.
class TokenFinder {
 public:
  TokenFinder() = default;
  /// `text` is the token's text, normalized if the token is.
  void Add(const AddedToken& token, std::string_view text);

  /// Passes the parts of `part` in order: text, or a token and its text. Special tokens are text.
  void Split(const TextPart& part,
             const std::function<void(const TextPart& text, const AddedToken* token)>& sink) const;

 private:
  struct Hit {
    const AddedToken* token = nullptr;
    std::size_t end = 0;
  };
  Hit Longest(std::string_view text, std::size_t at) const;

  std::vector<AddedToken> tokens_;
  /// A tree of bytes: (node << 8 | byte) -> node. Node 0 is its root.
  std::unordered_map<std::uint64_t, std::uint32_t> nodes_;
  std::unordered_map<std::uint32_t, std::size_t> ends_;  ///< node -> place in tokens_
};

}  // namespace troupe::bpe
