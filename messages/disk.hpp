// What the Node of a process does with its disk for other processes: nodes may share none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/fields.hpp"

namespace troupe {

/// Look for a file of a checkpoint, by its path.
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

/// A Node, to those who only publish.
using ManifestDisk = caf::typed_actor<caf::replies_to<PublishManifest>::with<ManifestPublished>>;

/// From a Node to itself: work `number` with the disk has ended.
struct DiskWorkEnded {
  std::int64_t number = 0;
};
inline auto Fields(DiskWorkEnded& x) { return std::tie(x.number); }

}  // namespace troupe
