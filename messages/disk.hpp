// What the Node of a process does with its disk and its memory for other processes: nodes may share no
// disk, and what is in memory ends with a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/fields.hpp"

namespace troupe {

/// Look for a file of a checkpoint, by its path, in memory and on the disk.
struct FindFile {
  std::string path;
};
inline auto Fields(FindFile& x) { return std::tie(x.path); }
struct FileFound {
  bool found = false;
  std::uint64_t bytes = 0;
};
inline auto Fields(FileFound& x) { return std::tie(x.found, x.bytes); }

/// Read a part of it, at most kMostOfFile bytes.
struct ReadFile {
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
inline auto Fields(ReadFile& x) { return std::tie(x.path, x.offset, x.bytes); }
struct FileRead {
  std::vector<std::byte> bytes;
};
inline auto Fields(FileRead& x) { return std::tie(x.bytes); }
inline constexpr std::uint64_t kMostOfFile = 1 << 20;

/// Write the manifest of a checkpoint whose shards are written, and remove old checkpoints.
struct PublishManifest {
  std::string folder;
  std::string text;  ///< of the file
  /// Those to keep: all that process 0 has. Empty: as the configuration says.
  std::vector<std::int64_t> steps;
};
inline auto Fields(PublishManifest& x) { return std::tie(x.folder, x.text, x.steps); }
struct ManifestPublished : NoFields {};

/// From the Director: fetch files of shards of process `from`, and hold them. Answered when all have
/// arrived.
struct HoldMirror {
  std::string folder;
  int from = 0;
  std::vector<std::string> files;  ///< their names
};
inline auto Fields(HoldMirror& x) { return std::tie(x.folder, x.from, x.files); }
struct MirrorHeld : NoFields {};

/// From one Node to another, for process `to`: give it those files.
struct GiveFiles {
  std::string folder;
  int to = 0;
  std::vector<std::string> files;
};
inline auto Fields(GiveFiles& x) { return std::tie(x.folder, x.to, x.files); }
struct FilesGiven {
  std::vector<HeldFile> files;
};
inline auto Fields(FilesGiven& x) { return std::tie(x.files); }

/// From the Director: all processes hold their files. Drop those of other checkpoints.
struct CompleteHeld {
  std::string folder;
  std::string manifest;  ///< its text
};
inline auto Fields(CompleteHeld& x) { return std::tie(x.folder, x.manifest); }
struct HeldCompleted : NoFields {};

/// The part of a Node that holds checkpoints in memory.
using Holder = caf::typed_actor<caf::replies_to<HoldMirror>::with<MirrorHeld>,
                                caf::replies_to<CompleteHeld>::with<HeldCompleted>>;

/// A Node, to those who only publish.
using ManifestDisk = caf::typed_actor<caf::replies_to<PublishManifest>::with<ManifestPublished>>;

/// From a Node to itself: work `number` with the disk, or with tensors, has ended.
struct NodeWorkEnded {
  std::int64_t number = 0;
};
inline auto Fields(NodeWorkEnded& x) { return std::tie(x.number); }

}  // namespace troupe
