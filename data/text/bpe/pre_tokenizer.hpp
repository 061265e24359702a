// The pre-tokenizer of a tokenizer.json: splits a normalized text into words. Tokens never cross
// the border of a word.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "data/text/bpe/json_node.hpp"
#include "data/text/bpe/pattern.hpp"
#include "data/text/bpe/text_part.hpp"

namespace troupe::bpe {

/// Splits at the matches of a pattern.
struct SplitStep {
  Pattern pattern;
  bool keeps_matches = true;  ///< as words
  bool keeps_rest = true;     ///< what lies between matches, as words
};

/// Puts a space before a text that does not begin with one.
struct LeadingSpaceStep {};

/// Replaces spaces by a mark, and puts one before the text.
struct MetaspaceStep {
  enum class Prepend { kAlways, kFirst, kNever };
  Pattern space;
  std::string mark;
  Prepend prepend = Prepend::kAlways;  ///< kFirst: only at the beginning of the whole text
  bool splits = true;                  ///< before each mark
};

using PreTokenizerStep = std::variant<SplitStep, LeadingSpaceStep, MetaspaceStep>;

/// Reads the mark of a Metaspace: one character.
std::string ReadMark(const JsonNode& node);

class PreTokenizer {
 public:
  PreTokenizer() = default;
  /// Reads Sequence, Split, ByteLevel and Metaspace. Throws std::runtime_error, a line with file and
  /// place, for another one.
  explicit PreTokenizer(const JsonNode& node);

  /// Whether words are bytes rather than characters to the model.
  bool byte_level() const { return byte_level_; }

  /// Passes the words of `part` to `sink`, in order. `first`: the original begins the whole text.
  void Split(const TextPart& part, bool first,
             const std::function<void(const TextPart& word)>& sink) const;

 private:
  using Sink = std::function<void(const TextPart& word)>;
  void ReadSplit(const JsonNode& node);
  void ReadByteLevel(const JsonNode& node);
  void ReadMetaspace(const JsonNode& node);
  void Run(std::size_t step, const TextPart& part, bool first, const Sink& sink) const;

  std::vector<PreTokenizerStep> steps_;
  bool byte_level_ = false;
};

}  // namespace troupe::bpe
