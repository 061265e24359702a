// Converts text to token ids and back. The tokenizer's name and the number of encoders determine
// the ids of a run. Every encoder has one placeholder id, whose embedding its rows replace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
  /// Does not add or recognize bos, eos or placeholders in the text.
  virtual std::vector<TextToken> Encode(std::string_view text) const = 0;
  /// Omits ids without text (bos, eos, pad, placeholders).
  virtual std::string Decode(std::span<const std::int64_t> ids) const = 0;

  virtual std::int64_t bos() const = 0;
  virtual std::int64_t eos() const = 0;
  virtual std::int64_t pad() const = 0;
  /// Returns the id that marks rows of the k-th encoder (in the order of the config file).
  virtual std::int64_t placeholder(int encoder) const = 0;
  /// Returns the smallest legal vocabulary: all ids are below it.
  virtual std::int64_t size() const = 0;
};

/// `name` is "bytes" or "sentencepiece:FILE".
///   bytes          0-255 the bytes, 256 bos, 257 eos, 258 pad, 259 + k placeholder k
///   sentencepiece  the model's own ids, then pad if the model has none, then the placeholders
/// Throws std::runtime_error for an unknown name, a file that is missing or is not a model, or a
/// model without bos or eos.
std::shared_ptr<const Tokenizer> MakeTokenizer(const std::string& name, int num_encoders);

}  // namespace troupe
