// One shard of a job into one file and back, in the layout it had.
//
//   FOLDER/MODULE.s0-dp0-cp0-tp1.safetensors   by every shard (WriteShard)
//   FOLDER/manifest.json                       by one process, once all are written (manifest.hpp)
//
// A file has the pieces that its shard owns, as "KIND/NAME": "parameter/language.norm.weight",
// "first_moment/...", "second_moment/...". The metadata of the same name says where in the whole
// tensor the piece lies: {"global_shape": [21, 16], "offsets": [11, 0]}. So every element of the
// job is stored once, and who restores reads its own file and those of the owners it copies.
//
// Each shard checks the SHA-256 of its own file while it reads it, once. Where it copies from
// another's it relies on that one's check: all shards of a job read before any goes on.
#pragma once

#include <string>

#include "checkpoint/manifest.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

/// Writes the shard's file into `folder`, which is made when it is not there, and answers the
/// SHA-256 of its bytes. `step` is how many optimizer steps are done. The file takes its
/// name once its bytes are on the disk; a shard that owns nothing writes an empty one. Reads the
/// program's memory: no pass or update may run meanwhile. Throws std::runtime_error, path and
/// reason.
std::string WriteShard(const StageProgram& program, const ShardAddress& shard,
                       const std::string& folder, std::int64_t step);

/// Gives every piece of `program` the value it had: owned pieces from the shard's own file, the
/// others from their owner's. `folder` must be visible with all its files, and its manifest decides
/// which those are. The whole layout is checked before the program is changed; memory for a copy of
/// one kind of tensors is needed at a time, and for those of wider types than the rest.
///
/// Throws std::runtime_error, one line: no or a broken manifest, a file that is not as the manifest
/// says or no safetensors file, and for a piece that is not there with its name, offsets, shapes
/// and type, the tensor, the file, what was expected and what is there. A file of another step or
/// with another SHA-256 than the manifest's is named with what to do about it. After that, and
/// after a disk that failed half way, the program holds a mixture and is of no use.
void ReadShard(StageProgram& program, const ShardAddress& shard, const std::string& folder);

}  // namespace troupe
