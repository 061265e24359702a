// Whether the pieces that the shards hold are the tensors that the reference holds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "modules/stage_program.hpp"

namespace troupe {

/// How far the pieces of one tensor are from the reference.
struct TensorDifference {
  std::string name;
  Shape shape;                  ///< of the whole tensor
  double scale = 0.0;           ///< what differences are relative to; see CompareTensors
  double worst = 0.0;           ///< largest |piece - reference| / scale; infinite if not comparable
  Shape worst_index;            ///< where, in the whole tensor
  double worst_expected = 0.0;  ///< the reference's value there
  double worst_found = 0.0;     ///< the piece's
  double copies_differ = 0.0;   ///< largest difference / scale of two pieces that overlap
  std::int64_t uncovered = 0;   ///< elements that no piece holds
};

/// All tensors of one kind.
struct Comparison {
  std::vector<TensorDifference> tensors;  ///< of every reference tensor, in order of the names
  std::vector<std::string> missing;       ///< reference tensors without a piece
  std::vector<std::string> extra;         ///< pieces of tensors that the reference does not have
  std::vector<std::string> malformed;     ///< pieces that do not fit their tensor: what and why
};

/// Compares every element of every piece, copies included, in double. A difference is relative to
/// the largest |element| of the whole reference tensor; where that is 0 the piece must be 0 too. A
/// number that is not finite, on either side, differs infinitely.
///
/// One tensor has no size of its own: attention does not change when all keys move by the same
/// vector, so the gradient of `...k_proj.bias` is 0 and what both sides hold is rounding. It is
/// relative to the larger of itself and its `...k_proj.weight`. That is enough for gradients in any
/// precision; as AdamW divides by the gradient's own size, float32 parameters after a step differ
/// there by a part of the learning rate, so parameters are to be compared in float64.
///
/// `reference` holds whole tensors, each name once, else std::invalid_argument. Either side may be
/// float32 or float64.
Comparison CompareTensors(const std::vector<TensorPiece>& reference,
                          const std::vector<TensorPiece>& pieces);

/// Everything wrong, one line each; empty when all tensors agree within `limit`.
std::vector<std::string> Faults(const Comparison& comparison, double limit);

/// The worst relative difference of each module and kind as a table of text, one line per module
/// (projectors count as modules): module, tensors, worst gradient, worst parameter, worst first
/// moment, worst second moment, name of the worst tensor. "-" where there is nothing to compare.
std::string FormatTable(const std::map<TensorKind, Comparison>& kinds);

}  // namespace troupe
