// tokenizer_config.json of a Hugging Face folder, and the folder's chat template.
#pragma once

#include <optional>
#include <string>

namespace troupe {

/// The roles of tokens.
struct TokenizerConfig {
  std::string path;  ///< of the file
  std::string eos;
  std::optional<std::string> bos = {};
  std::optional<std::string> pad = {};
  std::optional<bool> adds_bos = {};  ///< whether texts begin with bos, if the file says so

  /// Throws std::runtime_error, a line with file and place: the file is missing, larger than 16 MiB,
  /// not such a file, or names no eos.
  static TokenizerConfig Read(const std::string& folder);
};

/// A template in the language Jinja that turns a conversation into a prompt.
struct ChatTemplate {
  std::string path;  ///< of the file that holds it
  std::string text;
};

/// Returns the template of `folder`, from the first of chat_template.jinja, chat_template.json and
/// tokenizer_config.json that has one. Throws std::runtime_error for a file that cannot be used.
std::optional<ChatTemplate> FindChatTemplate(const std::string& folder);

}  // namespace troupe
