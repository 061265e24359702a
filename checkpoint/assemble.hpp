// Whole tensors from the pieces that shards hold.
#pragma once

#include <vector>

#include "checkpoint/safetensors.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

/// Copies every owner's piece to its place. The result is in order of the names, each whole tensor
/// once. Throws std::runtime_error naming the tensor: pieces that disagree about its shape or type,
/// a piece outside of it, elements that no owner holds.
std::vector<NamedTensor> AssembleTensors(const std::vector<TensorPiece>& pieces);

}  // namespace troupe
