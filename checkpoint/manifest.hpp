// The manifest of a checkpoint: manifest.json, written last, after all shard files.
//
//   {"format": "troupe-sharded-3", "step": 120, "steps": 1000, "configuration": TOML,
//    "data": {"place": 960, "group": 8, "rows": 600, "digest": HEX},
//    "files": [{"name": "language.s0-dp0-cp0-tp0.safetensors", "process": "n0", "bytes": 4096,
//               "sha256": HEX, "header_sha256": HEX}, ...],
//    "tensors": {"parameter/language.norm.weight": {"type": "F32", "shape": [16],
//                "digest": "0123456789abcdef", "files": [0, 3]}, ...},
//    "sha256": HEX}
//
// The last sha256 is that of the manifest's text without this key, so a damaged manifest cannot
// hide a file or a sum. A folder without a manifest, or with other files than it lists, remains
// from an interrupted write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/stored_type.hpp"
#include "modules/data_position.hpp"
#include "modules/stage_program.hpp"
#include "modules/stored_state.hpp"

namespace troupe {

/// "language.s1-dp0-cp0-tp1". Does not contain the rank: a shard may be restored on another device.
std::string ShardName(const ShardAddress& shard);
/// The shard's file in a checkpoint's folder: "language.s0-dp0-cp0-tp1.safetensors".
std::string ShardFileName(const ShardAddress& shard);

/// "parameter/language.norm.weight".
std::string StoredName(TensorKind kind, const std::string& name);

/// FOLDER/manifest.json.
std::string ManifestPath(const std::string& folder);

struct CheckpointFile {
  std::string name;     ///< within the folder
  std::string process;  ///< that wrote it
  std::uint64_t bytes = 0;
  std::string sha256;         ///< of the whole file
  std::string header_sha256;  ///< of the bytes before its tensors
  std::string disk = {};      ///< StoredShard::disk
  friend bool operator==(const CheckpointFile&, const CheckpointFile&) = default;
};

/// A tensor of the state, whole.
struct SavedTensor {
  StoredType type = StoredType::kFloat32;
  Shape shape;
  std::uint64_t digest = 0;        ///< checkpoint/tensor_digest.hpp
  std::vector<std::size_t> files;  ///< with pieces of it: places in `files`, ascending
  friend bool operator==(const SavedTensor&, const SavedTensor&) = default;
};

/// The state of a run apart from its tensors.
struct RunState {
  std::int64_t step = 0;           ///< optimizer steps done
  std::int64_t steps = 0;          ///< of the whole run, for the learning-rate schedule
  std::string configuration = {};  ///< resolved, as TOML
  DataPosition data = {};
  friend bool operator==(const RunState&, const RunState&) = default;
};

struct CheckpointManifest {
  RunState run;
  std::vector<CheckpointFile> files;
  std::map<std::string, SavedTensor> tensors = {};  ///< by StoredName
  friend bool operator==(const CheckpointManifest&, const CheckpointManifest&) = default;
};

/// A shard whose file has been written.
struct WrittenShard {
  ShardAddress shard;
  StoredShard stored;
};

/// Returns the manifest of a checkpoint with the files of `shards`, which may have none. Reads no file. Throws
/// std::runtime_error for shards that disagree about a tensor.
CheckpointManifest MakeManifest(const RunState& run, const std::vector<WrittenShard>& shards);

/// Flushes the directory entries of the folder and of its files, then writes FOLDER/manifest.json
/// atomically. (WriteShard has flushed the bytes of the files.) Throws std::runtime_error for a
/// file that differs from the manifest, or a failing disk.
void WriteManifest(const std::string& folder, const CheckpointManifest& manifest);

/// The manifest as the text of its file. Throws std::runtime_error if no one could read it.
std::string FormatManifest(const CheckpointManifest& manifest);
/// The reverse. Throws std::runtime_error, one line: not a manifest, or changed since.
CheckpointManifest ParseManifest(const std::string& text);
/// A digest of the text of FOLDER/manifest.json (Sha256Of it); empty if there is none.
std::string ManifestSum(const std::string& folder);

/// Returns nothing if the folder has no manifest. Throws std::runtime_error, one line that names
/// the file, if it cannot be read, is not a manifest or was changed. Reads at most
/// kMaxManifestBytes.
std::optional<CheckpointManifest> ReadManifest(const std::string& folder);
/// The same of a folder that must have one.
CheckpointManifest RequireManifest(const std::string& folder);

/// Enough for a hundred thousand files.
inline constexpr std::uint64_t kMaxManifestBytes = 64ULL << 20;

/// RUN/checkpoints/disk names the disk, where the nodes of a job share none.
inline constexpr const char* kDiskFile = "disk";
/// Returns what it holds; "" if it is not there.
std::string DiskOf(const std::string& checkpoints);

/// The files that should be in the folder. Where the nodes of a job share none, they are those of its
/// disk, and those of every disk of which any is there.
std::vector<CheckpointFile> FilesHere(const std::string& folder,
                                      const CheckpointManifest& manifest);

/// "FOLDER/a.safetensors: 12 bytes, expected 4096" for the first of FilesHere that is missing or has
/// another size; nothing if there is none. Checks only sizes.
std::optional<std::string> FirstFault(const std::string& folder,
                                      const CheckpointManifest& manifest);
std::optional<std::string> FaultOf(const std::string& folder, const CheckpointFile& file);

}  // namespace troupe
