// Puts whole tensors together from the pieces of shards.
#pragma once

#include <vector>

#include "checkpoint/safetensors.hpp"
#include "modules/tensor_pieces.hpp"

namespace troupe {

/// Copies every owner's piece to its place. Returns each whole tensor once, sorted by name. Throws
/// std::runtime_error naming the tensor: pieces that disagree about its shape or type, a piece
/// outside of it, elements without an owner.
std::vector<NamedTensor> AssembleTensors(const std::vector<TensorPiece>& pieces);

/// Copies the values of a piece to their places in `whole`. Returns their number.
std::int64_t CopyPiece(const TensorPiece& piece, const Buffer& whole);

/// The same tensors. Each is put together while it is written, and fetched, a band of rows at a
/// time. Throws like AssembleTensors: before anything is written, but when a band is if owners
/// overlap.
std::vector<TensorToWrite> TensorsToWrite(const std::vector<TensorPiece>& pieces,
                                          const FetchPiece& fetch);

}  // namespace troupe
