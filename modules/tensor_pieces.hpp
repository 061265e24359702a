// Pieces of tensors as text, and over each other.
#pragma once

#include <string>
#include <vector>

#include "modules/stage_program.hpp"

namespace troupe {

/// "parameter", "gradient", "first moment", "second moment".
const char* InWords(TensorKind kind);
/// "parameter", "gradient", "first_moment", "second_moment": part of the format of checkpoints.
std::string ToString(TensorKind kind);

/// "[8, 16] of float32 at [8, 0] of [21, 16]".
std::string Describe(const TensorPiece& piece);

/// Whether both are the same part of tensors of the same name, shape and type; values and owners
/// do not matter.
bool SamePlace(const TensorPiece& a, const TensorPiece& b);

/// Copies the bytes of `given` into the memory of `held`, whose names are unique. `given` must be
/// the same pieces, in any order; else nothing is written and std::invalid_argument names the first
/// that is unknown, given twice, different or missing. `who` begins the text.
void OverwritePieces(const std::string& who, const std::vector<TensorPiece>& held,
                     const std::vector<TensorPiece>& given);

}  // namespace troupe
