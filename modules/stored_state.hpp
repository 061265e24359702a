// What is known about the stored state of a job: shared by those who write, send and read it.
#pragma once

#include <cstdint>
#include <string>
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

/// The file of a shard.
struct StoredShard {
  std::string process = {};  ///< that wrote it
  std::uint64_t bytes = 0;
  std::string sha256;         ///< of the file
  std::string header_sha256;  ///< of the bytes before its tensors
  std::vector<StoredTensor> tensors;
  friend bool operator==(const StoredShard&, const StoredShard&) = default;
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
  std::vector<std::string> fresh;
};

}  // namespace troupe
