#include "data/text/bpe/tokenizer_file.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "data/text/bpe/merge_space.hpp"
#include "data/text/bpe/utf8.hpp"
#include "files/strict_json.hpp"
#include "files/text_file.hpp"

namespace troupe::bpe {
namespace {

/// {"post_processor": {"processors": [{"single": [{"SpecialToken": {...}}]}]}}
constexpr int kMaxFileDepth = 8;

nlohmann::json ReadDocument(const std::string& path) {
  const std::string text = ReadWholeFile(path);
  return ParseStrictJson(text, path + ": the file", kMaxFileDepth);
}

/// Reads the part `key`; a default one if it is missing or null.
template <class Part>
Part ReadPart(const JsonNode& node, const std::string& key) {
  const auto found = node.Find(key);
  return found ? Part(*found) : Part();
}

/// Returns the token that a post-processor puts before a text.
std::optional<std::string> LeadingToken(const JsonNode& node, int depth = 0) {
  if (const auto list = node.Find("processors"); list && depth == 0) {
    std::optional<std::string> token;
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (auto found = LeadingToken(list->Item(i), depth + 1)) token = std::move(found);
    }
    return token;
  }
  const auto single = node.Find("single");
  if (!single || single->size() == 0) return std::nullopt;
  const auto first = single->Item(0).Find("SpecialToken");
  if (!first) return std::nullopt;
  return first->At("id").Text();
}

}  // namespace

TokenizerFile::TokenizerFile(const std::string& path)
    : TokenizerFile(JsonNode(ReadDocument(path), path)) {}

TokenizerFile::TokenizerFile(const JsonNode& node)
    : normalizer_(ReadPart<Normalizer>(node, "normalizer")),
      pre_tokenizer_(ReadPart<PreTokenizer>(node, "pre_tokenizer")),
      model_(node.At("model"), pre_tokenizer_.byte_level()),
      decoder_(node.At("decoder")) {
  SetAddedTokens(node);
  if (const auto post = node.Find("post_processor")) leading_token_ = LeadingToken(*post);
}

void TokenizerFile::SetAddedTokens(const JsonNode& node) {
  if (const auto list = node.Find("added_tokens")) added_ = ReadAddedTokens(*list);
  end_ = model_.vocabulary().end();
  for (std::size_t i = 0; i < added_.size(); ++i) {
    const AddedToken& token = added_[i];
    end_ = std::max(end_, token.id + 1);
    added_by_id_.emplace(token.id, i);
    added_by_text_.emplace(token.text, token.id);
    if (!token.normalized) {
      in_text_.Add(token, token.text);
      continue;
    }
    AlignedText storage;
    in_normalized_.Add(token, normalizer_.Apply({token.text}, storage).text);
  }
}

std::vector<TextToken> TokenizerFile::Encode(std::string_view text, bool first) const {
  if (text.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw std::runtime_error("expected a text below 4 GiB");
  }
  std::vector<TextToken> tokens;
  tokens.reserve(text.size() / 3);
  MergeSpace space;
  const auto add_words = [&](const TextPart& part, const AddedToken* token) {
    if (token != nullptr) {
      tokens.push_back({token->id, part.BeginOf(0), part.EndOf(part.text.size() - 1)});
      return;
    }
    pre_tokenizer_.Split(part, first,
                         [&](const TextPart& word) { model_.Encode(word, space, tokens); });
  };
  const auto add_normalized = [&](const TextPart& part, const AddedToken* token) {
    if (token != nullptr) return add_words(part, token);
    AlignedText storage;
    in_normalized_.Split(normalizer_.Apply(part, storage), add_words);
  };
  if (ValidPrefix(text) == text.size()) {
    in_text_.Split({text}, add_normalized);
  } else {
    const AlignedText repaired = WithoutBrokenUtf8(text);
    in_text_.Split(repaired.part(), add_normalized);
  }
  return tokens;
}

std::string TokenizerFile::Decode(std::span<const std::int64_t> ids) const {
  std::vector<std::string> texts;
  for (const std::int64_t id : ids) {
    if (id < 0 || id >= end_) continue;
    const auto added = added_by_id_.find(static_cast<std::uint32_t>(id));
    if (added != added_by_id_.end()) {
      if (!added_[added->second].special) texts.push_back(added_[added->second].text);
    } else if (const auto text = model_.vocabulary().TextOf(id)) {
      texts.emplace_back(*text);
    }
  }
  return decoder_.Join(std::move(texts));
}

std::optional<std::uint32_t> TokenizerFile::FindAdded(std::string_view text) const {
  const auto found = added_by_text_.find(text);
  if (found == added_by_text_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::uint32_t> TokenizerFile::Find(std::string_view text) const {
  const auto added = FindAdded(text);
  return added ? added : model_.vocabulary().Find(text);
}

}  // namespace troupe::bpe
