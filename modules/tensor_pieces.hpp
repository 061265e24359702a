// Pieces of tensors as text, in their wholes, and over each other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "modules/stage_program.hpp"
#include "modules/stored_state.hpp"

namespace troupe {

/// Returns the values of a piece, which may be in another process.
using FetchPiece = std::function<Buffer(const TensorPiece&)>;

/// "parameter", "gradient", "first moment", "second moment".
const char* InWords(TensorKind kind);
/// "parameter", "gradient", "first_moment", "second_moment": part of the format of checkpoints.
std::string ToString(TensorKind kind);

/// The module or projector that a tensor belongs to: "language" of "language.norm.weight".
std::string PartNameOf(const std::string& name);

/// "[8, 16] of float32 at [8, 0] of [21, 16]".
std::string Describe(const TensorPiece& piece);

/// Whether both are the same part of tensors of the same name, shape and type; values and owners
/// do not matter.
bool SamePlace(const TensorPiece& a, const TensorPiece& b);

/// Whether the piece lies within its whole, in every dimension.
bool LiesInside(const TensorPiece& piece);

/// Returns the first tensor that two files of the same state do not have in common, in words: "first
/// moment language.norm.weight"; "" if there is none. Values are compared by their digests.
std::string FirstDifference(const StoredShard& one, const StoredShard& other);

/// Calls `visit(first in the piece, first in the whole, count)` for each run of elements that are
/// neighbours in both, along the innermost dimension. The piece must lie inside.
template <class Visit>
void ForEachRun(const TensorPiece& piece, Visit visit) {
  const Shape& shape = piece.value.shape();
  const std::int64_t run = shape.empty() ? 1 : shape.back();
  for (std::int64_t first = 0; first < NumElements(shape); first += run) {
    std::int64_t rest = first;
    std::int64_t at = 0;
    std::int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      at += (rest % shape[d] + piece.offsets[d]) * stride;
      rest /= shape[d];
      stride *= piece.global_shape[d];
    }
    visit(first, at, run);
  }
}

/// Copies the bytes of `given` into the memory of `held`, whose places are unique. `given` must be
/// the same pieces, in any order, but those in folders may be missing; else nothing is written and std::invalid_argument names the first
/// that is unknown, given twice, different or missing. `who` begins the text.
void OverwritePieces(const std::string& who, const std::vector<TensorPiece>& held,
                     const std::vector<TensorPiece>& given);

}  // namespace troupe
