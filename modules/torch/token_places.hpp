// Which tokens of a microbatch a rank along cp has, and which rows of encoders take their places.
#pragma once

#include <cstdint>
#include <string>
#include <torch/types.h>
#include <vector>

#include "modules/stage_program.hpp"
#include "modules/torch/context_group.hpp"

namespace troupe {

/// Tokens [B, T] of a microbatch in host memory. A rank has those that ChunksOf says of each sample, in
/// this order; without cp it has all, padding included.
class TokenPlaces {
 public:
  /// `lengths` are the tokens of each sample, without padding where the samples are cut. With a `width`
  /// of 0 instead of T only their numbers are known.
  TokenPlaces(std::vector<std::int64_t> lengths, std::int64_t width, const ContextGroup& context);

  const std::vector<std::int64_t>& lengths() const { return lengths_; }
  /// The own elements [M] of x [B, T].
  at::Tensor Own(const at::Tensor& x) const;
  /// `places` [n] b * T + t as places among the own tokens. -1 stays, and is that of the others.
  at::Tensor InOwn(const at::Tensor& places) const;
  /// As InOwn, without the places of other tokens.
  at::Tensor OnlyOwn(const at::Tensor& places) const;
  /// Where the rows go that an encoder's leader sends this rank, of those of the whole samples.
  at::Tensor OfRows(const RowTable& whole) const;
  /// The numbers of the own tokens of a sample.
  std::vector<std::int64_t> TokensOf(std::size_t sample) const;

 private:
  bool cut() const { return parts_ > 1; }

  std::vector<std::int64_t> lengths_;
  std::int64_t width_;
  int parts_;
  int part_;
  at::Tensor own_;                    ///< [M]: b * T + t
  std::vector<std::int64_t> in_own_;  ///< [B * T]
};

}  // namespace troupe
