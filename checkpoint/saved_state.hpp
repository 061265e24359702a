// Reads any part of any tensor of a checkpoint, whatever layout wrote it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/safetensors.hpp"
#include "files/byte_source.hpp"

namespace troupe {

/// Opens files when they are needed and keeps them open. Not thread-safe.
class SavedState {
 public:
  /// Reads the manifest. Throws std::runtime_error, one line that names the file.
  explicit SavedState(std::string folder);
  /// The same for what is not on this disk, too: such files are opened by `elsewhere`, which may be
  /// empty. The manifest must have the sum `manifest_sum`, if that is not empty.
  SavedState(std::string folder, const std::string& manifest_sum, OpenElsewhere elsewhere);

  const std::string& folder() const { return folder_; }
  const CheckpointManifest& manifest() const { return manifest_; }
  /// Null if there is no such tensor; `name` is a StoredName.
  const SavedTensor* Find(const std::string& name) const;

  /// Returns a part of a tensor that is there, in its stored type. Reads the headers of the files
  /// that have pieces of the tensor, and of these the bytes of the part. Throws std::runtime_error,
  /// one line that names the file: one that is missing, damaged in its header or unreadable, pieces
  /// that do not cover the part. Damage of the values is not noticed here, but by the digest.
  Buffer Read(const std::string& name, const std::vector<std::int64_t>& offsets,
              const Shape& shape);
  /// Opens every file that has pieces of the tensor.
  void Open(const std::string& name) { PiecesOf(name); }

  /// Bytes of files that have been read, without the manifest.
  std::uint64_t bytes_read() const;

 private:
  /// A piece of a tensor in a file.
  struct Piece {
    const SafetensorsReader* file = nullptr;
    const TensorEntry* entry = nullptr;
    std::vector<std::int64_t> offsets;
  };
  /// Opens a file and notes its pieces, once.
  void OpenFile(std::size_t place);
  const std::vector<Piece>& PiecesOf(const std::string& name);

  std::string folder_;
  OpenElsewhere elsewhere_;
  CheckpointManifest manifest_;
  std::map<std::size_t, std::shared_ptr<const SafetensorsReader>> files_;  ///< by place
  std::map<std::string, std::vector<Piece>> pieces_;  ///< by tensor, of the open files
  std::set<std::string> checked_;                     ///< tensors whose pieces are all there
};

}  // namespace troupe
