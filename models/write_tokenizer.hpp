// Adds tokens to the tokenizer of a Hugging Face folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

struct AddedToken {
  std::int64_t id = 0;
  std::string text;
};

/// Returns the text of a tokenizer.json with those of `tokens` whose ids are beyond its own,
/// as special tokens.
/// Throws std::runtime_error for a text that is no tokenizer.json.
std::string WithAddedTokens(const std::string& json, const std::vector<AddedToken>& tokens);

/// Returns the text of a tokenizer_config.json with `pad` as its padding, unless it states one.
std::string WithPadToken(const std::string& json, const std::string& pad);

}  // namespace troupe
