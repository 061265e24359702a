// Checkpoint files in the memory of a process: its own, and mirrors of other processes' files. They
// outlive a generation of the job, so the next one can resume from a step that no disk has.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "files/byte_source.hpp"
#include "transport/buffer.hpp"

namespace troupe {

/// A file of a checkpoint in memory.
struct HeldFile {
  std::string name;  ///< within the folder
  Buffer bytes;      ///< [size] uint8
};

/// What a process holds of a checkpoint.
struct HeldCheckpoint {
  std::string folder;
  std::string manifest;            ///< its text; empty: not complete yet, as far as known here
  std::vector<std::string> files;  ///< without the manifest, in the order of their names
};

/// Thread-safe. A path is FOLDER/NAME; no such folder is on a disk.
class HeldFiles {
 public:
  HeldFiles();
  /// Returns uninitialised memory for a file, if possible that of a file that was dropped: fresh memory
  /// costs more time than a copy.
  Buffer Allocate(std::size_t num_bytes);
  void Put(const std::string& folder, HeldFile file);
  /// A file's bytes. Throws std::runtime_error if it is not held.
  Buffer BytesOf(const std::string& folder, const std::string& name) const;
  /// All processes have put their files: notes the manifest, and drops all other folders.
  void Complete(const std::string& folder, std::string manifest);
  /// Drops all folders but this one.
  void KeepOnly(const std::string& folder);
  /// Drops everything.
  void Clear();

  /// A file, or a manifest. Null: it is not held.
  std::shared_ptr<const ByteSource> Open(const std::string& path) const;
  std::vector<HeldCheckpoint> Checkpoints() const;
  std::size_t num_bytes() const;

 private:
  struct Folder {
    std::map<std::string, Buffer> files;
    std::string manifest;
  };

  /// Memory of files that were allocated here and whose last handle is gone, to be used again.
  class FreeMemory;

  /// With the lock.
  void DropOthers(const std::string& folder);

  mutable std::mutex mutex_;
  std::map<std::string, Folder> folders_;
  const std::shared_ptr<FreeMemory> free_;
};

}  // namespace troupe
