// The normalizer of a tokenizer.json: changes a text before it is split into words.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "data/text/bpe/json_node.hpp"
#include "data/text/bpe/pattern.hpp"
#include "data/text/bpe/text_part.hpp"

namespace troupe::bpe {

/// A normalization form of Unicode, as utf8proc computes it.
enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };

/// Inserts `text` before a text that is not empty.
struct PrependStep {
  std::string text;
};
struct ReplaceStep {
  Pattern pattern;
  std::string text;
};
using NormalizerStep = std::variant<UnicodeForm, PrependStep, ReplaceStep>;

/// Steps that are applied in order.
class Normalizer {
 public:
  Normalizer() = default;
  /// Reads Sequence, NFC, NFD, NFKC, NFKD, Prepend and Replace. Throws std::runtime_error, a line
  /// with file and place, for another one.
  explicit Normalizer(const JsonNode& node);

  /// Returns the normalized `part`. `storage` holds it if it differs, and outlives it. Throws
  /// std::runtime_error if it exceeds MostBytesOf(part.text.size()).
  TextPart Apply(TextPart part, AlignedText& storage) const;

 private:
  std::vector<NormalizerStep> steps_;
};

/// Reads a pattern of a tokenizer.json: {"String": TEXT} or {"Regex": EXPRESSION}.
Pattern ReadPattern(const JsonNode& node);
/// Reads a text that takes the place of another one. Throws std::runtime_error if it is longer than
/// any published one.
const std::string& ReadInserted(const JsonNode& node);

}  // namespace troupe::bpe
