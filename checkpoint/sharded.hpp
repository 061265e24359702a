// Writes one shard of a job into one file, and reads shards of any layout from such files.
//
//   FOLDER/MODULE.s0-dp0-cp0-tp1.safetensors   by every shard that stores something (WriteShard)
//   FOLDER/manifest.json                       by one process, once all are written (manifest.hpp)
// A file holds the pieces that its shard owns, as "KIND/NAME": "parameter/language.norm.weight",
// "first_moment/...", "second_moment/...". The metadata of the same name is the place of the piece
// in the whole tensor: {"global_shape": [21, 16], "offsets": [11, 0]}. A shard may own several pieces
// of a tensor, in the order of their offsets: the second is "KIND/NAME#1". So every element of the
// job is stored once.
// "shard" and "step" in the metadata ("language.s0-dp0-cp0-tp1", "120") identify the file, so that
// a header of another step or shard is recognized before the rest is read.
//
// A shard of any layout reads the parts that it holds from whichever files have them. Headers are
// compared with the manifest when files are opened, values by the digests of whole tensors, to which
// all shards of the job contribute (CheckDigests).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/safetensors.hpp"
#include "modules/held_files.hpp"
#include "modules/stage_program.hpp"
#include "modules/stored_state.hpp"

namespace troupe {

/// Writes the shard's file into `order.folder`, which it creates if necessary. The file gets its name
/// when its bytes are on the disk; a shard that stores nothing writes none. Nothing may change the
/// pieces meanwhile. Throws std::runtime_error, path and reason.
StoredShard WriteShard(const std::vector<StoredPiece>& pieces, const ShardAddress& shard,
                       const SaveOrder& order);
/// The same with the live tensors of `program`: no update may run at the same time.
StoredShard WriteShard(const StageProgram& program, const ShardAddress& shard,
                       const SaveOrder& order);

/// The same into memory that `allocate` gives: a HeldFile of `order.folder`. There must be pieces.
struct MadeShard {
  StoredShard stored;
  HeldFile file;
};
MadeShard MakeShard(const std::vector<StoredPiece>& pieces, const ShardAddress& shard,
                    const SaveOrder& order,
                    const std::function<Buffer(std::size_t num_bytes)>& allocate);

/// Restores every piece of `program`, or of its trained state, from a checkpoint of any layout and
/// precision. A tensor that the checkpoint lacks keeps its values if its module is in
/// `order.fresh`. All is found before the program changes. Needs memory for a copy of one kind of
/// tensors at a time, and for tensors with wider types than the rest. The caller must pass the
/// results of all shards of the job to CheckDigests before it goes on.
///
/// Throws std::runtime_error, one line: a missing or damaged manifest; a file that differs from it or
/// is not a safetensors file; a tensor that is missing or has another shape (with tensor, expected
/// and actual shape). For a damaged header the line includes the next step. After a disk failure
/// halfway, the program holds a mixture and must not be used.
/// Files that are not on this disk are opened by `elsewhere`, which may be empty.
LoadedShard ReadShard(StageProgram& program, const ShardAddress& shard, const LoadOrder& order,
                      const OpenElsewhere& elsewhere = {});

/// Compares what all shards of a job have read with the manifest of the checkpoint. Throws
/// FailureError of kind kDamaged, which names a tensor whose values are not those that were written and
/// says how to go on.
void CheckDigests(const LoadOrder& order, const std::vector<StoredTensor>& read,
                  const OpenElsewhere& elsewhere = {});

/// A tensor of a shard's file, as its name and metadata say.
struct StoredPlace {
  TensorKind kind = TensorKind::kParameter;
  std::string name;
  Shape global_shape;
  std::vector<std::int64_t> offsets;
};

/// Returns nothing for a tensor without such a name. Throws std::runtime_error, one line that names
/// the file, for one that has no place or does not lie in its whole.
std::optional<StoredPlace> ParseStoredPlace(const SafetensorsReader& file,
                                            const TensorEntry& entry);

/// Opens `file` in `folder`, by `elsewhere` if it is not there, reads its header and compares size and
/// header with the manifest. Throws std::runtime_error, one line that names the file.
std::shared_ptr<const SafetensorsReader> OpenShardFile(const std::string& folder, std::int64_t step,
                                                       const CheckpointFile& file,
                                                       const OpenElsewhere& elsewhere = {});

}  // namespace troupe
