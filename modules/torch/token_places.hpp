// Which tokens of a microbatch a rank along cp has, and which rows of encoders take their places.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <torch/types.h>
#include <vector>

#include "modules/stage_program.hpp"
#include "modules/torch/torch_kind.hpp"

namespace troupe {

/// Tokens [B, T] of a microbatch in host memory. A part has those that ChunksOf gives it of each sample, in
/// this order; with neither cp nor packs it has all, padding included. Ranks along tp share its rows if
/// they cut them.
class TokenPlaces {
 public:
  /// `lengths` are the tokens of each sample that have rows, which are all T if `padded`. With a `width`
  /// of 0 instead of T only their numbers are known.
  TokenPlaces(std::vector<std::int64_t> lengths, std::int64_t width, bool padded,
              const BodyGroups& groups);

  const std::vector<std::int64_t>& lengths() const { return lengths_; }
  std::int64_t num_rows() const { return tokens_.num_rows(); }  ///< M, of the part
  /// The elements [M] of x [B, T] that the part has.
  at::Tensor Own(const at::Tensor& x) const;
  /// `places` [n] b * T + t as rows of the part. -1 stays, and is that of all others.
  at::Tensor InPart(const at::Tensor& places) const;
  /// Where the rows of the whole samples go that arrive here, of those that `cut` gives this rank.
  at::Tensor OfRows(const RowTable& whole, const RowCut& cut) const;
  /// `rows` [n] of the part as rows of this rank; -1: another rank's.
  at::Tensor InSlice(const at::Tensor& rows) const;
  /// How many of `rows` [n] of the part, in ascending order, each rank along tp has.
  std::vector<std::int64_t> CountsOf(const at::Tensor& rows) const;
  /// The place of a row: a sample of the microbatch, and a token of it.
  struct Place {
    std::size_t sample = 0;
    std::int64_t token = 0;
  };
  /// Those of the rows of the part that rank `slice` of `slices` has, if each has equally many; none of
  /// padding: of rows that make them equally many, and of tokens after the `lengths` of samples, unless these
  /// are unknown.
  std::vector<std::optional<Place>> RowsOfSlice(const std::vector<std::int64_t>& lengths,
                                                int slices, int slice) const;
  /// The numbers of the part's tokens of a sample.
  std::vector<std::int64_t> TokensOf(std::size_t sample) const;

 private:
  Interval SliceOf(int rank) const;

  std::vector<std::int64_t> lengths_;
  bool padded_;
  int parts_;
  int part_;
  int slices_;
  int slice_;
  PartTokens tokens_;                 ///< of samples by their place in the microbatch
  at::Tensor own_;                    ///< [M]: b * T + t
  std::vector<std::int64_t> in_own_;  ///< [B * T]: a row of the part
};

}  // namespace troupe
