// Prompt formats: how the turns of a conversation become one text, and which of its tokens are
// learned. docs/data.md shows each. `plain` and `vicuna_v1` give the tokens and labels of LLaVA
// (haotian-liu/LLaVA, preprocess_plain and preprocess_v1), `llama3` and `chatml` those of LLaVA-NeXT
// (preprocess_llama3 and preprocess_qwen).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/rows/llava_row.hpp"

namespace troupe {

enum class PromptKind {
  kLines,  ///< questions end with a line end, answers with eos: for models trained from nothing
  kPlain,  ///< items and a caption
  kVicunaV1,
  kLlama3,
  kChatml
};

/// Returns the format that data.prompt names; none for "auto".
std::optional<PromptKind> PromptOf(std::string_view word);

/// The word of data.prompt.
std::string_view WordOf(PromptKind kind);

/// A part of a conversation, in the order of its tokens.
struct PromptPart {
  enum class Kind { kText, kSpecial, kBos, kEos, kItem };
  Kind kind = Kind::kText;
  std::string text = {};     ///< kSpecial: the special token
  int field = -1;            ///< kItem: whose item
  bool learned = false;      ///< its tokens are labels
  bool answer = false;       ///< the text of an answer, without the words of the format
  bool begins_anew = false;  ///< kText: no token joins it with the text before it
};

/// Returns the parts of a conversation. The format's system text stands where `turns` has none. An
/// open answer ends the conversation with what the format puts before the text of an answer.
/// Throws std::runtime_error, the reason as one line, for turns that the format cannot express.
std::vector<PromptPart> PromptParts(PromptKind kind, const std::vector<Turn>& turns,
                                    const std::vector<RowField>& fields);

/// Returns the special tokens that the format needs, such as "<|eot_id|>".
std::vector<std::string> SpecialTokensOf(PromptKind kind);

/// How an answer ends: with eos if both are empty.
struct AnswerEnd {
  std::string special = {};  ///< the special token after it
  std::string text = {};     ///< the text after it
};
AnswerEnd AnswerEndOf(PromptKind kind);

/// Returns the text whose token is learned wherever it stands; none if the format has no such text.
/// LLaVA-NeXT learns the line ends of ChatML in questions, too.
std::optional<std::string> AlwaysLearned(PromptKind kind);

/// Returns `text` without white space at its ends, as Python's str.strip().
std::string_view Stripped(std::string_view text);

}  // namespace troupe
