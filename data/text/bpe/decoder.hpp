// The decoder of a tokenizer.json: turns the texts of tokens into one text.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "data/text/bpe/json_node.hpp"
#include "data/text/bpe/pattern.hpp"

namespace troupe::bpe {

/// Letters of byte-level vocabularies become their bytes, and all tokens one text.
struct BytesStep {};
/// "<0x0A>" becomes its byte; bytes that are not UTF-8 become U+FFFD each.
struct FallbackStep {};
/// All tokens become one text.
struct FuseStep {};
/// Replaces matches in every token.
struct DecodedReplaceStep {
  Pattern pattern;
  std::string text;
};
/// Removes `text` at most `at_begin` times from the beginning of every token, and so at its end.
struct StripStep {
  std::string text;
  std::size_t at_begin = 0;
  std::size_t at_end = 0;
};
/// Marks become spaces; in the first token they are removed if `prepended`.
struct UnmarkStep {
  std::string mark;
  bool prepended = true;
};

using DecoderStep =
    std::variant<BytesStep, FallbackStep, FuseStep, DecodedReplaceStep, StripStep, UnmarkStep>;

class Decoder {
 public:
  Decoder() = default;
  /// Reads Sequence, ByteLevel, ByteFallback, Fuse, Replace, Strip and Metaspace. Throws
  /// std::runtime_error, a line with file and place, for another one.
  explicit Decoder(const JsonNode& node);

  std::string Join(std::vector<std::string> tokens) const;

 private:
  std::vector<DecoderStep> steps_;
};

}  // namespace troupe::bpe
