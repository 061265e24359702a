// Text to token ids and back. The ids of a run are fixed by the tokenizer's name and the number of
// encoders: every encoder owns one placeholder id, whose embedding its rows replace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A token and the bytes [begin, end) of the encoded text that it stands for; begin == end for one
/// that stands for none.
struct TextToken {
  std::int64_t id = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Immutable, hence thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// No bos, eos or placeholder is added or recognised: text is only ever text.
  virtual std::vector<TextToken> Encode(std::string_view text) const = 0;
  /// Ids that stand for no text (bos, eos, pad, placeholders) are left out.
  virtual std::string Decode(std::span<const std::int64_t> ids) const = 0;

  virtual std::int64_t bos() const = 0;
  virtual std::int64_t eos() const = 0;
  virtual std::int64_t pad() const = 0;
  /// The id at which rows of the k-th encoder (in the order of the config file) are put.
  virtual std::int64_t placeholder(int encoder) const = 0;
  /// All ids are below this: the smallest legal vocabulary.
  virtual std::int64_t size() const = 0;
};

/// `name` is "bytes" or "sentencepiece:FILE".
///   bytes          0-255 the bytes, 256 bos, 257 eos, 258 pad, 259 + k placeholder k
///   sentencepiece  the model's own ids, then pad if the model has none, then the placeholders
/// Throws std::runtime_error: an unknown name, a file that is missing or no model, a model without
/// bos or eos.
std::unique_ptr<const Tokenizer> MakeTokenizer(const std::string& name, int num_encoders);

}  // namespace troupe
