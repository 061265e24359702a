// What makes a folder of shard files a checkpoint: manifest.json, which is written last.
//
//   {"format": "troupe-sharded-2", "step": 120, "config": "HASH",
//    "files": [{"name": "language.s0-dp0-cp0-tp0.safetensors", "bytes": 4096, "sha256": HEX}, ...],
//    "sha256": HEX}
//
// The last is that of the manifest without it, as it is printed: a damaged manifest cannot hide a
// file or a sum. A folder without it, or whose files are not those it lists, is what an
// interruption left behind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "modules/stage_program.hpp"

namespace troupe {

/// A shard of a job, as text: "language.s0-dp0-cp0-tp1". The rank is not part of it: a shard may
/// come back on another device.
std::string ShardName(const ShardAddress& shard);
/// Its file in its checkpoint's folder: "language.s0-dp0-cp0-tp1.safetensors".
std::string ShardFileName(const ShardAddress& shard);

struct CheckpointFile {
  std::string name;  ///< within the folder
  std::uint64_t bytes = 0;
  std::string sha256;  ///< of the whole file
  friend bool operator==(const CheckpointFile&, const CheckpointFile&) = default;
};

struct CheckpointManifest {
  std::int64_t step = 0;    ///< optimizer steps done
  std::string config_hash;  ///< of the run's config; who restores decides whether it must match
  std::vector<CheckpointFile> files;
  friend bool operator==(const CheckpointManifest&, const CheckpointManifest&) = default;
};

/// A shard whose file is written, and what WriteShard said about it.
struct StoredShard {
  ShardAddress shard;
  std::string sha256;
};

/// The manifest of `folder`, where the files of all `shards` are written; they are not read. Throws
/// std::runtime_error naming the file that is not there.
CheckpointManifest MakeManifest(const std::string& folder, std::int64_t step,
                                const std::string& config_hash,
                                const std::vector<StoredShard>& shards);

/// Writes FOLDER/manifest.json, atomically, once the names of all that lies in the folder, and the
/// folder's own, are on the disk; the bytes of the files are since WriteShard. Throws
/// std::runtime_error: a file that is not as the manifest says, a disk that fails.
void WriteManifest(const std::string& folder, const CheckpointManifest& manifest);

/// Nothing when the folder has none. Throws std::runtime_error, one line that names the file, when
/// it cannot be read, is no manifest or was changed. At most kMaxManifestBytes are read.
std::optional<CheckpointManifest> ReadManifest(const std::string& folder);

/// Beyond it nobody is listing files: room for more than a hundred thousand.
inline constexpr std::uint64_t kMaxManifestBytes = 16ULL << 20;

/// "FOLDER/a.safetensors: 12 bytes, expected 4096" for the first file that is not there with its
/// size; nothing when all are. Only sizes are looked at.
std::optional<std::string> FirstFault(const std::string& folder,
                                      const CheckpointManifest& manifest);

}  // namespace troupe
