// What is known about the stored state of a job: shared by those who write, send and read it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "layout/shape.hpp"
#include "modules/stage_program.hpp"
#include "transport/buffer.hpp"

namespace troupe {

/// The pieces that a shard owns of one tensor.
struct StoredTensor {
  TensorKind kind = TensorKind::kParameter;
  std::string name;
  Shape shape;  ///< of the whole
  DType type = DType::kFloat32;
  /// Sum over the elements of these pieces (checkpoint/tensor_digest.hpp): those of all owners add
  /// up to the digest of the whole tensor, whatever the layout.
  std::uint64_t digest = 0;
  friend bool operator==(const StoredTensor&, const StoredTensor&) = default;
};

/// A piece of a tensor that a shard stores.
struct StoredPiece {
  TensorKind kind = TensorKind::kParameter;
  TensorPiece piece;
};

/// Lists what a shard stores, by `tensors(kind)`: StageProgram::Tensors, or CopiedTensors.
template <class Tensors>
std::vector<StoredPiece> StoredPieces(Tensors tensors) {
  std::vector<StoredPiece> all;
  for (const TensorKind kind : kStoredKinds) {
    for (TensorPiece& piece : tensors(kind)) {
      if (IsStoredHere(piece)) all.push_back({kind, std::move(piece)});
    }
  }
  return all;
}

/// The file in a checkpoint's folder that makes it one.
inline constexpr const char* kManifestName = "manifest.json";

/// Which checkpoint a shard is stored in.
struct SaveOrder {
  std::string folder;
  std::int64_t step = 0;    ///< optimizer steps done
  bool many_disks = false;  ///< the nodes of the job do not share the folder
  bool in_memory = false;   ///< held by the process (HeldFiles), not written
};

/// The file of a shard.
struct StoredShard {
  std::string file = {};     ///< its name within the folder; empty: the shard stores nothing
  std::string process = {};  ///< that wrote it
  std::string disk = {};  ///< with many disks: the process that has this one, the first of several
  std::uint64_t bytes = 0;
  std::string sha256 = {};         ///< of the file; in memory, of the bytes before its tensors
  std::string header_sha256 = {};  ///< of the bytes before its tensors
  std::vector<StoredTensor> tensors = {};
  friend bool operator==(const StoredShard&, const StoredShard&) = default;
};

/// A shard and its file, which the shard has written, or a replica for it.
struct SavedShard {
  int rank = 0;
  int stage = 0;  ///< index in the StageGraph
  StoredShard stored;
};

/// What a shard has read of a checkpoint.
struct LoadedShard {
  std::vector<StoredTensor> tensors;  ///< the pieces that it owns
  std::uint64_t bytes_read = 0;       ///< of files of shards
  std::uint64_t bytes_held = 0;       ///< of its pieces, as they are stored
};

/// The files that a job starts from.
struct LoadOrder {
  std::string folder;  ///< of a checkpoint
  /// Modules and projectors that may lack tensors there: they begin with their own values.
  std::vector<std::string> fresh = {};
  std::string manifest_sum = {};  ///< ManifestSum of the right one; empty: whatever is there
  bool in_memory = false;         ///< held by processes of the job (HeldFiles)
};

}  // namespace troupe
