#include "data/text/tokenizer_config.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>

#include "data/text/bpe/json_node.hpp"
#include "files/file_error.hpp"
#include "files/strict_json.hpp"
#include "files/text_file.hpp"

namespace troupe {
namespace {

using bpe::JsonNode;

/// Vocabularies of 100,000 reserved tokens are listed in less.
constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20U;
constexpr int kMaxConfigDepth = 8;

nlohmann::json ReadConfigFile(const std::string& path) {
  return ParseStrictJson(ReadWholeFile(path, kMaxConfigBytes), path + ": the file",
                         kMaxConfigDepth);
}

/// A token is written as its text or as {"content": TEXT, ...}.
std::string TokenText(const JsonNode& node) {
  return node.IsObject() ? node.At("content").Text() : node.Text();
}

std::optional<std::string> FindToken(const JsonNode& node, const std::string& key) {
  const auto found = node.Find(key);
  if (!found) return std::nullopt;
  return TokenText(*found);
}

/// Reads the template in a file: a text, or a list of named ones, of which "default" counts.
std::optional<std::string> FindTemplate(const JsonNode& node) {
  const auto found = node.Find("chat_template");
  if (!found || found->IsText()) return found ? std::optional(found->Text()) : std::nullopt;
  for (std::size_t i = 0; i < found->size(); ++i) {
    const JsonNode named = found->Item(i);
    if (named.At("name").Text() == "default") return named.At("template").Text();
  }
  return std::nullopt;
}

}  // namespace

TokenizerConfig TokenizerConfig::Read(const std::string& folder) {
  const std::string path = folder + "/tokenizer_config.json";
  const nlohmann::json document = ReadConfigFile(path);
  const JsonNode node(document, path);
  TokenizerConfig config{.path = path, .eos = TokenText(node.At("eos_token"))};
  config.bos = FindToken(node, "bos_token");
  config.pad = FindToken(node, "pad_token");
  if (const auto adds = node.Find("add_bos_token")) config.adds_bos = adds->Flag();
  return config;
}

std::optional<ChatTemplate> FindChatTemplate(const std::string& folder) {
  const std::string jinja = folder + "/chat_template.jinja";
  if (IsThere(jinja)) return ChatTemplate{jinja, ReadWholeFile(jinja, kMaxConfigBytes)};
  for (const char* name : {"/chat_template.json", "/tokenizer_config.json"}) {
    const std::string path = folder + name;
    if (!IsThere(path)) continue;
    const nlohmann::json document = ReadConfigFile(path);
    if (auto text = FindTemplate(JsonNode(document, path))) return ChatTemplate{path, *text};
  }
  return std::nullopt;
}

}  // namespace troupe
