// Assembles whole tensors from the pieces of shards.
#pragma once

#include <vector>

#include "checkpoint/safetensors.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

/// Copies every owner's piece to its place. Returns each whole tensor once, sorted by name. Throws
/// std::runtime_error naming the tensor: pieces that disagree about its shape or type, a piece
/// outside of it, elements without an owner.
std::vector<NamedTensor> AssembleTensors(const std::vector<TensorPiece>& pieces);

}  // namespace troupe
