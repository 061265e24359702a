#include "models/write_tokenizer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "files/strict_json.hpp"

namespace troupe {

/// Sequences of pre-tokenizers in sequences are the deepest part of published files.
static constexpr int kTokenizerDepth = 32;

/// The largest id of the model's and the added tokens.
static std::int64_t LastId(const nlohmann::ordered_json& file) {
  std::int64_t last = -1;
  const auto note = [&last](const nlohmann::ordered_json& id) {
    if (id.is_number_unsigned()) last = std::max(last, id.get<std::int64_t>());
  };
  const auto vocabulary = nlohmann::ordered_json::json_pointer("/model/vocab");
  if (file.contains(vocabulary) && file[vocabulary].is_object()) {
    for (const auto& [text, id] : file[vocabulary].items()) note(id);
  }
  for (const auto& entry : file.at("added_tokens")) {
    if (entry.is_object() && entry.contains("id")) note(entry["id"]);
  }
  return last;
}

std::string WithAddedTokens(const std::string& json, const std::vector<AddedToken>& tokens) {
  ParseStrictJson(json, "the tokenizer", kTokenizerDepth);  // checks it
  auto file = nlohmann::ordered_json::parse(json);
  auto& added = file["added_tokens"];
  if (added.is_null()) added = nlohmann::ordered_json::array();
  if (!added.is_array()) FailReading("added_tokens: expected a list");
  const std::int64_t last = LastId(file);
  for (const AddedToken& token : tokens) {
    if (token.id <= last) continue;
    added.push_back({{"id", token.id},
                     {"content", token.text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  return file.dump(2) + "\n";
}

std::string WithPadToken(const std::string& json, const std::string& pad) {
  ParseStrictJson(json, "the tokenizer's configuration", kTokenizerDepth);
  auto file = nlohmann::ordered_json::parse(json);
  const auto found = file.find("pad_token");
  if (found != file.end() && !found->is_null()) return json;
  file["pad_token"] = pad;
  return file.dump(2) + "\n";
}

}  // namespace troupe
