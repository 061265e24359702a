// Checks that a shard's file in a checkpoint is the one that the manifest lists.
//
// Its metadata is {"shard": "language.s0-dp0-cp0-tp1", "step": "120"}, so that its header alone
// identifies a file of another step or shard. Checking the other bytes takes the SHA-256 of the
// whole file.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "checkpoint/manifest.hpp"
#include "checkpoint/safetensors.hpp"

namespace troupe {

/// A readable file whose contents have changed since it was written.
struct DamagedShard : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The metadata that WriteShard puts into the file's header.
Metadata ShardMetadata(const ShardAddress& shard, std::int64_t step);

/// Opens `file` in `folder`, reads its header and checks header and size. Throws
/// std::runtime_error, one line that names the file; DamagedShard if it is of another step or
/// shard.
std::shared_ptr<const SafetensorsReader> OpenShardFile(const std::string& folder, std::int64_t step,
                                                       const CheckpointFile& file);

/// Throws DamagedShard, one line, unless `sha256`, of the bytes that `reader` has read, is that of
/// the manifest.
void CheckSha256(const SafetensorsReader& reader, const CheckpointFile& file,
                 const std::string& sha256);

}  // namespace troupe
