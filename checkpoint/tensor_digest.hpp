// A digest of a tensor that does not depend on how the tensor is cut.
//
// It is the sum, modulo 2^64, of a hash of every element: of its bits and its place in the whole. So
// the digests of pieces without overlap add up to that of the whole, and processes that each read
// a part of a checkpoint in another layout verify it together, without reading anything twice. An
// element that is damaged, missing, read twice or put in a wrong place changes the sum. It guards
// against accidents, not against an enemy; `troupe ckpt verify` compares SHA-256.
#pragma once

#include <cstdint>

#include "modules/stage_program.hpp"

namespace troupe {

/// Returns the digest of a piece, which must lie inside its whole (modules/tensor_pieces.hpp).
std::uint64_t DigestOf(const TensorPiece& piece);

}  // namespace troupe
