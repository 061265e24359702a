// Simulates the loss of power while a program writes files.
//
// RecordedDisk records the calls of the C library by which this thread changes files below a folder. The
// product writes real files with its own code. CrashedDisk returns a state in which the folder may be
// found if the machine loses its power at one of these calls. POSIX permits many such states:
//   - A write survives if its file was flushed afterwards. Otherwise any part of it may be lost.
//   - A new, renamed or removed entry of a folder survives if the folder was flushed afterwards.
//     Otherwise it may be lost, even if later entries survive.
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
