#include "data/text/bpe/added_tokens.hpp"

#include "data/text/bpe/utf8.hpp"
#include "data/text/bpe/vocabulary.hpp"

namespace troupe::bpe {
namespace {

constexpr std::size_t kMaxAddedBytes = 1024;
/// Of all added tokens. The tree of their bytes takes some 60 times as much.
constexpr std::size_t kMaxAllBytes = std::size_t{4} << 20U;

/// Returns the character that ends at byte `end`, which is not 0.
char32_t CharacterBefore(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (at > 0 && (static_cast<std::uint8_t>(text[at]) & 0xc0U) == 0x80) --at;
  return CharacterAt(text, at).code;
}

bool IsInsideWord(std::string_view text, std::size_t begin, std::size_t end) {
  return (begin > 0 && IsWordCharacter(CharacterBefore(text, begin))) ||
         (end < text.size() && IsWordCharacter(CharacterAt(text, end).code));
}

std::size_t SkipSpaceBefore(std::string_view text, std::size_t low, std::size_t begin) {
  while (begin > low && IsWhiteSpace(CharacterBefore(text, begin))) {
    begin -= Utf8Of(CharacterBefore(text, begin)).size();
  }
  return begin;
}

std::size_t SkipSpaceAfter(std::string_view text, std::size_t end) {
  while (end < text.size() && IsWhiteSpace(CharacterAt(text, end).code)) {
    end += CharacterAt(text, end).bytes;
  }
  return end;
}

}  // namespace

std::vector<AddedToken> ReadAddedTokens(const JsonNode& list) {
  std::vector<AddedToken> tokens;
  std::size_t num_bytes = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonNode node = list.Item(i);
    AddedToken token;
    token.id = node.At("id").Number(kMaxId);
    token.text = node.At("content").Text();
    if (token.text.empty() || token.text.size() > kMaxAddedBytes) {
      node.At("content").Refuse("1 to " + std::to_string(kMaxAddedBytes) + " bytes");
    }
    num_bytes += token.text.size();
    if (num_bytes > kMaxAllBytes) list.Fail("expected at most 4 MiB of tokens, got more");
    token.special = node.FlagOr("special", false);
    token.single_word = node.FlagOr("single_word", false);
    token.lstrip = node.FlagOr("lstrip", false);
    token.rstrip = node.FlagOr("rstrip", false);
    token.normalized = node.FlagOr("normalized", !token.special);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

void TokenFinder::Add(const AddedToken& token, std::string_view text) {
  if (text.empty()) return;
  std::uint32_t node = 0;
  for (const char c : text) {
    const std::uint64_t edge = std::uint64_t{node} << 8U | static_cast<std::uint8_t>(c);
    node = nodes_.emplace(edge, static_cast<std::uint32_t>(nodes_.size()) + 1).first->second;
  }
  ends_.emplace(node, tokens_.size());
  tokens_.push_back(token);
}

TokenFinder::Hit TokenFinder::Longest(std::string_view text, std::size_t at) const {
  Hit hit;
  std::uint32_t node = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    const auto edge = nodes_.find(std::uint64_t{node} << 8U | static_cast<std::uint8_t>(text[i]));
    if (edge == nodes_.end()) break;
    node = edge->second;
    const auto end = ends_.find(node);
    if (end != ends_.end()) hit = {&tokens_[end->second], i + 1};
  }
  return hit;
}

void TokenFinder::Split(
    const TextPart& part,
    const std::function<void(const TextPart& text, const AddedToken* token)>& sink) const {
  const std::string_view text = part.text;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size() && !tokens_.empty();) {
    const Hit hit = Longest(text, at);
    if (hit.token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = hit.end;
    at = hit.end;
    if (hit.token->special || (hit.token->single_word && IsInsideWord(text, begin, end))) continue;
    // The token before may have taken the white space, or all of this one's text.
    if (begin < done) continue;
    if (hit.token->lstrip) begin = SkipSpaceBefore(text, done, begin);
    if (hit.token->rstrip) end = SkipSpaceAfter(text, end);
    if (begin > done) sink(part.Sub(done, begin), nullptr);
    sink(part.Sub(begin, end), hit.token);
    done = end;
  }
  if (done < text.size()) sink(part.Sub(done, text.size()), nullptr);
}

}  // namespace troupe::bpe
