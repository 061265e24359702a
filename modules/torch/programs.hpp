// Stage programs that compute with libtorch: encoders, projectors, language models, cut over
// tensor-parallel ranks and pipeline stages. This header shows nothing of libtorch.
#pragma once

#include <functional>
#include <memory>

#include "configs/config.hpp"
#include "modules/groups.hpp"
#include "modules/stage_program.hpp"
#include "transport/buffer.hpp"

namespace troupe {

/// The device of a shard, and its implementation.
struct TorchOptions {
  int device = Buffer::kHost;  ///< or the number of a GPU of this process
  /// On the host, too, compute as on a GPU: by operations of the library instead of our own loops,
  /// which change the last bits. bfloat16 and GPUs always do.
  bool portable = false;
};

using TorchOptionsOf = std::function<TorchOptions(const ShardAddress&)>;

/// Makes programs for the shards of every module of `config` that computes, in the run's precision.
///
/// A shard computes, in this order: the encoders that run inline in it with their projectors, the
/// projectors at the "to" end of its incoming edges, its own layers, the projectors at the "from"
/// end of its outgoing edges. Its links are, in: the hop from the stage before, or the boundary
/// edges into the module in the order of config.edges (inline edges are no links); out: the hop to
/// the next stage, or the boundary edges out of the module in that order.
///   hop of an encoder          [rows, H]   those between its layers; its kind says how many
///   hop of a language model    [B, T, H]
///   boundary                   [rows, H]   H of the receiving module where the projector runs
///                                          "from", else of the sending one
/// The programs take their groups from `groups`, once each; they outlive neither it nor each
/// other's collectives. The factory throws std::invalid_argument for a module that does not
/// compute, an edge whose rows its destination does not take, and heads that tp does not divide.
///
/// On a GPU all buffers of passes must be in its memory, but those of Inputs, which are the host's;
/// the group's collectives get pointers to its memory; work is queued on the calling thread's
/// current stream, and a pass returns before it has run. Nothing of a forward or backward waits for
/// the device: ForwardResult::finish reports the loss of a pass and whether all is finite.
/// ReduceGradients, Tensors and SetTensors wait.
ProgramFactory MakeTorchPrograms(const Config& config, std::shared_ptr<GroupTable> groups,
                                 TorchOptionsOf options);
/// The same for all shards.
ProgramFactory MakeTorchPrograms(const Config& config, std::shared_ptr<GroupTable> groups,
                                 TorchOptions options = {});

}  // namespace troupe
