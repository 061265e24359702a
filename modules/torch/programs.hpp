// Stage programs that compute with libtorch: vision transformers, projectors, language models, cut
// over tensor-parallel ranks and pipeline stages. This header shows nothing of libtorch.
#pragma once

#include <memory>

#include "configs/config.hpp"
#include "modules/groups.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

/// Makes programs for the shards of every vit and llama module of `config`, in the run's precision.
///
/// A shard computes, in this order: the encoders that run inline in it with their projectors, the
/// projectors at the "to" end of its incoming edges, its own layers, the projectors at the "from"
/// end of its outgoing edges. Its links are, in: the hop from the stage before, or the boundary
/// edges into the module in the order of config.edges (inline edges are no links); out: the hop to
/// the next stage, or the boundary edges out of the module in that order.
///   hop of a vit       [n * (patches + 1), H]   n images, class token first
///   hop of a llama     [B, T, H]
///   boundary           [rows, H]                of the receiving module where the projector runs
///                                               "from", else of the sending one
/// The programs take their groups from `groups`, once each; they outlive neither it nor each
/// other's collectives. The factory throws std::invalid_argument for a module that is neither vit
/// nor llama, an edge into a vit or out of a llama, and heads that tp does not divide.
ProgramFactory MakeTorchPrograms(const Config& config, std::shared_ptr<GroupTable> groups);

}  // namespace troupe
