// Converts text to token ids and back. The tokenizer's name and the encoders' placeholders determine
// the ids of a run. Every encoder has one placeholder id, whose embedding its rows replace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A token and the bytes [begin, end) of the encoded text that it represents; begin == end if it
/// represents none.
struct TextToken {
  std::int64_t id = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Immutable, hence thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Encodes a text at the beginning of a sample or after an item. Does not add or recognize bos,
  /// eos, placeholders or other special tokens in the text: a row of a data set cannot forge them.
  /// Throws std::runtime_error if the tokenizer's file makes it too much work for this text.
  virtual std::vector<TextToken> Encode(std::string_view text) const = 0;
  /// Encodes a text that follows a special token. Some models of words put no space before it.
  virtual std::vector<TextToken> EncodeAfterSpecial(std::string_view text) const {
    return Encode(text);
  }
  /// Omits ids without text (bos, eos, pad, placeholders).
  virtual std::string Decode(std::span<const std::int64_t> ids) const = 0;

  /// The token before every text, if the model was trained with one.
  virtual std::optional<std::int64_t> bos() const = 0;
  virtual std::int64_t eos() const = 0;
  virtual std::int64_t pad() const = 0;
  /// Returns the id that marks rows of the k-th encoder (in the order of the config file).
  virtual std::int64_t placeholder(int encoder) const = 0;
  /// Returns the special token with this text ("<|eot_id|>"), if there is one.
  virtual std::optional<std::int64_t> special(std::string_view) const { return std::nullopt; }
  /// Returns the smallest legal vocabulary: all ids are below it.
  virtual std::int64_t size() const = 0;
};

/// `name` is "bytes", "sentencepiece:FILE" or "hf:DIR"; `placeholders` has one for each encoder.
///   bytes          0-255 the bytes, 256 bos, 257 eos, 258 pad, 259 + k placeholder k
///   sentencepiece  the model's own ids, then pad if the model has none, then the placeholders
///   hf             those of DIR/tokenizer.json, else of DIR/tokenizer.model; then the placeholders
///                  and then pad, as far as the folder has none
/// Throws std::runtime_error for an unknown name, a file that is missing or cannot be used, or a
/// model without eos or, with sentencepiece, bos.
std::shared_ptr<const Tokenizer> MakeTokenizer(const std::string& name,
                                               const std::vector<std::string>& placeholders);

}  // namespace troupe
