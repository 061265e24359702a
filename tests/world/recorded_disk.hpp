// A disk that notes what the program asks of it, and what is left of that after a crash.
//
// RecordedDisk notes the calls that this thread makes of the C library for paths below a folder: the
// product writes real files, by its own code. CrashedDisk makes the folder as it may be found after
// the machine has lost its power at any of these calls. What was not flushed may be there, missing
// or torn, as POSIX permits:
//   - a write is sure once its file has been flushed; before, any part of it may be lost;
//   - an entry of a folder (a new, renamed or removed file) is sure once that folder has been
//     flushed; before, it may be lost, also while later ones are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// A file or folder, whatever its names; 0 is the recorded folder itself.
using Inode = int;
inline constexpr Inode kNoInode = -1;

/// A name in a folder now means `inode`, or nothing.
struct EntryChange {
  Inode folder = 0;
  std::string name;
  Inode inode = kNoInode;
  bool new_folder = false;
};

struct DiskCall {
  enum class Kind { kWrite, kTruncate, kFlush, kEntries, kFlushFolder, kMark };
  Kind kind = Kind::kMark;
  Inode inode = kNoInode;
  std::uint64_t offset = 0;          ///< kWrite
  std::string bytes = {};            ///< kWrite
  std::vector<EntryChange> entries;  ///< kEntries: all or none of them happen
  std::int64_t mark = 0;             ///< kMark
  std::string text = {};             ///< for people
};

struct DiskTree {
  std::map<Inode, std::map<std::string, Inode>> folders;
  std::map<Inode, std::string> files;

  /// Reads what is below a folder.
  static DiskTree Of(const std::string& folder);
  /// Writes it into an empty folder.
  void WriteTo(const std::string& folder) const;
};

/// Which calls fail.
struct DiskFault {
  std::size_t first = 0;  ///< number of the call, from 0
  int error = 0;          ///< ENOSPC, EIO or EROFS
  bool lasts = false;     ///< so do all calls after it
};

class RecordedDisk {
 public:
  /// Records what this thread does below `folder`, until it is destroyed. Not nested.
  explicit RecordedDisk(std::string folder);
  ~RecordedDisk();
  RecordedDisk(const RecordedDisk&) = delete;
  RecordedDisk& operator=(const RecordedDisk&) = delete;

  /// Notes a moment.
  void Mark(std::int64_t mark);

  // Set before the calls.
  bool forgets_flushes = false;         ///< of files: they do nothing
  bool forgets_folder_flushes = false;  ///< likewise
  std::optional<DiskFault> fault;

  const DiskTree& before() const { return before_; }
  const std::vector<DiskCall>& calls() const { return calls_; }

  // For the functions that stand before those of the C library.

  /// The error that a call on `path` gets instead; 0: none.
  int ErrorOf(const std::string& path);
  bool Has(const std::string& path) const;
  void Opened(int descriptor, const std::string& path, int flags);
  void Wrote(int descriptor, const void* bytes, std::size_t size);
  void Flushed(int descriptor);
  void Closed(int descriptor) { open_.erase(descriptor); }
  void Renamed(const std::string& from, const std::string& to);
  void Removed(const std::string& path);
  void MadeFolder(const std::string& path);
  std::string PathOf(int descriptor) const;

 private:
  struct Open {
    Inode inode = kNoInode;
    std::uint64_t offset = 0;
    std::string path;
  };
  struct Place {
    Inode folder = kNoInode;
    std::string name;
    Inode inode = kNoInode;
  };

  Place Find(const std::string& path) const;
  void Change(std::vector<EntryChange> entries, std::string text);

  const std::string folder_;
  const DiskTree before_;
  DiskTree now_;  ///< as the program sees it; files without their bytes
  std::map<Inode, std::uint64_t> sizes_;
  Inode last_ = 0;
  std::map<int, Open> open_;
  std::vector<DiskCall> calls_;
  std::size_t made_ = 0;  ///< calls, failed ones included
};

/// What may be found if the power is lost before call `count`.
DiskTree CrashedDisk(const DiskTree& before, const std::vector<DiskCall>& calls, std::size_t count,
                     std::mt19937_64& random);

}  // namespace troupe::testing
