// One shard's file in a checkpoint: is it the one that the manifest lists?
//
// Its metadata says {"shard": "language.s0-dp0-cp0-tp1", "step": "120"}, so that a file of another
// step or shard is known by its header alone. Whether its other bytes are those that were written
// only its SHA-256 says, for which all of it must be read.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "checkpoint/manifest.hpp"
#include "checkpoint/safetensors.hpp"

namespace troupe {

/// A file that can be read and is not what was written under its name.
struct DamagedShard : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What WriteShard puts into the file's header.
Metadata ShardMetadata(const ShardAddress& shard, std::int64_t step);

/// Opens `file` in `folder` and checks its size and header, which is all it reads. Throws
/// std::runtime_error, one line that names the file; of these DamagedShard for one of another step
/// or shard.
std::shared_ptr<const SafetensorsReader> OpenShardFile(const std::string& folder, std::int64_t step,
                                                       const CheckpointFile& file);

/// Throws DamagedShard, one line, unless `sha256`, of what `reader` read, is what the manifest
/// says.
void CheckSha256(const SafetensorsReader& reader, const CheckpointFile& file,
                 const std::string& sha256);

}  // namespace troupe
