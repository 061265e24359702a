// The keys and values of sequences that a language model continues, and its attention to them.
#pragma once

#include <cstdint>
#include <span>
#include <torch/types.h>
#include <vector>

namespace troupe {

/// Of one rank.
struct CacheSizes {
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< divides heads; head h reads kv head h / (heads / kv_heads)
  std::int64_t head_dim = 0;
};

/// New tokens of n neighbouring sequences, T of each, in the order of their rows.
struct CachedTokens {
  std::int64_t first = 0;  ///< number of the first sequence
  std::int64_t count = 0;  ///< n
  std::int64_t each = 0;   ///< T
  std::int64_t keys = 0;   ///< L: the longest of them ends here
  at::Tensor positions;    ///< [n * T] int64: place in the sequence
  at::Tensor slots;        ///< [n * kv_heads * T] int64: rows of a layer's keys, flattened
  at::Tensor hidden;       ///< [n, 1, 1, T, L] bool: later than the token; undefined: none is
};

/// Cosine and sine of tokens, [n, 1, T, D / 2].
struct Turning {
  at::Tensor cosine;
  at::Tensor sine;
};
/// Of the tables of RotaryTables (attention.hpp).
Turning TurningOf(const CachedTokens& tokens, const at::Tensor& cosine, const at::Tensor& sine);

/// Memory for S sequences of C tokens. Both grow.
class KeyValueCache {
 public:
  /// `options` are those of activations.
  KeyValueCache(const CacheSizes& sizes, const at::TensorOptions& options);

  std::int64_t num_sequences() const { return std::ssize(lengths_); }
  /// Adds an empty sequence behind the others.
  void Add() { lengths_.push_back(0); }
  /// Removes a sequence. The last one takes its number.
  void Remove(std::int64_t number);
  /// Makes room for `each` more tokens of sequences [first, first + count), which Attend must then
  /// fill in every layer.
  CachedTokens Append(std::int64_t first, std::int64_t count, std::int64_t each);
  /// Stores the keys and values of `qkv` [n * T, (heads + 2 kv_heads) * D], which is all q heads,
  /// then all k, then all v. Returns softmax(q k^T / sqrt(D)) v over each token and those before it,
  /// [n * T, heads * D].
  at::Tensor Attend(std::size_t layer, const at::Tensor& qkv, const CachedTokens& tokens,
                    const Turning& turning);

 private:
  void Reserve(std::int64_t sequences, std::int64_t tokens);

  CacheSizes sizes_;
  at::TensorOptions options_;
  std::int64_t sequences_ = 0;         ///< S
  std::int64_t capacity_ = 0;          ///< C
  std::vector<at::Tensor> keys_;       ///< by layer [S, kv_heads, C, D]
  std::vector<at::Tensor> values_;     ///< likewise
  std::vector<std::int64_t> lengths_;  ///< tokens of each sequence
};

}  // namespace troupe
