// The manifest of a checkpoint: manifest.json, written last, after all shard files.
//
//   {"format": "troupe-sharded-2", "step": 120, "config": "HASH",
//    "files": [{"name": "language.s0-dp0-cp0-tp0.safetensors", "bytes": 4096, "sha256": HEX}, ...],
//    "sha256": HEX}
//
// The last sha256 is that of the manifest's text without this key, so a damaged manifest cannot
// hide a file or a sum. A folder without a manifest, or with other files than it lists, remains
// from an interrupted write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "modules/stage_program.hpp"

namespace troupe {

/// "language.s0-dp0-cp0-tp1". Does not contain the rank: a shard may be restored on another device.
std::string ShardName(const ShardAddress& shard);
/// The shard's file in a checkpoint's folder: "language.s0-dp0-cp0-tp1.safetensors".
std::string ShardFileName(const ShardAddress& shard);

/// FOLDER/manifest.json.
std::string ManifestPath(const std::string& folder);

struct CheckpointFile {
  std::string name;  ///< within the folder
  std::uint64_t bytes = 0;
  std::string sha256;  ///< of the whole file
  friend bool operator==(const CheckpointFile&, const CheckpointFile&) = default;
};

struct CheckpointManifest {
  std::int64_t step = 0;    ///< optimizer steps done
  std::string config_hash;  ///< of the run's configuration; the reader decides if it must match
  std::vector<CheckpointFile> files;
  friend bool operator==(const CheckpointManifest&, const CheckpointManifest&) = default;
};

/// A shard whose file has been written.
struct StoredShard {
  ShardAddress shard;
  std::string sha256;  ///< returned by WriteShard
};

/// The manifest of `folder`, which holds the files of all `shards`. Does not read the files. Throws
/// std::runtime_error naming a missing file.
CheckpointManifest MakeManifest(const std::string& folder, std::int64_t step,
                                const std::string& config_hash,
                                const std::vector<StoredShard>& shards);

/// Flushes the directory entries of the folder and of its files, then writes FOLDER/manifest.json
/// atomically. (WriteShard has flushed the bytes of the files.) Throws std::runtime_error for a
/// file that differs from the manifest, or a failing disk.
void WriteManifest(const std::string& folder, const CheckpointManifest& manifest);

/// Returns nothing if the folder has no manifest. Throws std::runtime_error, one line that names
/// the file, if it cannot be read, is not a manifest or was changed. Reads at most
/// kMaxManifestBytes.
std::optional<CheckpointManifest> ReadManifest(const std::string& folder);

/// Enough for more than a hundred thousand files.
inline constexpr std::uint64_t kMaxManifestBytes = 16ULL << 20;

/// "FOLDER/a.safetensors: 12 bytes, expected 4096" for the first file that is missing or has
/// another size; nothing if there is none. Checks only sizes.
std::optional<std::string> FirstFault(const std::string& folder,
                                      const CheckpointManifest& manifest);

}  // namespace troupe
