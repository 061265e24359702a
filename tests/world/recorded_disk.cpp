#include "tests/world/recorded_disk.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::testing {
namespace {

namespace fs = std::filesystem;

thread_local RecordedDisk* recording = nullptr;

/// Numbers the files and folders below `path`, from `last` + 1.
void AddTo(DiskTree& tree, Inode folder, const fs::path& path, Inode& last) {
  tree.folders[folder];
  for (const auto& entry : fs::directory_iterator(path)) {
    const Inode inode = ++last;
    tree.folders[folder][entry.path().filename().string()] = inode;
    if (entry.is_directory()) {
      AddTo(tree, inode, entry.path(), last);
    } else {
      std::ifstream file(entry.path(), std::ios::binary);
      tree.files[inode] = {std::istreambuf_iterator<char>(file), {}};
    }
  }
}

Inode LastOf(const DiskTree& tree) {
  Inode last = 0;
  for (const auto& [inode, entries] : tree.folders) last = std::max(last, inode);
  for (const auto& [inode, bytes] : tree.files) last = std::max(last, inode);
  return last;
}

}  // namespace

DiskTree DiskTree::Of(const std::string& folder) {
  DiskTree tree;
  Inode last = 0;
  AddTo(tree, 0, folder, last);
  return tree;
}

void DiskTree::WriteTo(const std::string& folder) const {
  const std::function<void(Inode, const fs::path&)> write = [&](Inode inode, const fs::path& path) {
    const auto entries = folders.find(inode);
    if (entries == folders.end()) {
      const auto bytes = files.find(inode);
      std::ofstream file(path, std::ios::binary);
      if (bytes != files.end()) file << bytes->second;
      return;
    }
    fs::create_directories(path);
    for (const auto& [name, below] : entries->second) write(below, path / name);
  };
  write(0, folder);
}

RecordedDisk::RecordedDisk(std::string folder)
    : folder_(std::move(folder)), before_(DiskTree::Of(folder_)), now_(before_) {
  for (const auto& [inode, bytes] : before_.files) sizes_[inode] = bytes.size();
  last_ = LastOf(before_);
  recording = this;
}

RecordedDisk::~RecordedDisk() { recording = nullptr; }

void RecordedDisk::Mark(std::int64_t mark) {
  calls_.push_back({.kind = DiskCall::Kind::kMark,
                    .entries = {},
                    .mark = mark,
                    .text = "mark " + std::to_string(mark)});
}

int RecordedDisk::ErrorOf(const std::string& path) {
  if (!Has(path)) return 0;
  const std::size_t number = made_++;
  if (!fault) return 0;
  return number == fault->first || (fault->lasts && number > fault->first) ? fault->error : 0;
}

bool RecordedDisk::Has(const std::string& path) const {
  return path.size() >= folder_.size() && path.starts_with(folder_) &&
         (path.size() == folder_.size() || path[folder_.size()] == '/');
}

RecordedDisk::Place RecordedDisk::Find(const std::string& path) const {
  const fs::path below = fs::path(path).lexically_normal().lexically_relative(folder_);
  Place place{.folder = kNoInode, .name = {}, .inode = 0};
  for (const fs::path& part : below) {
    if (part.empty() || part == ".") continue;
    place.folder = place.inode;
    place.name = part.string();
    const auto folder = now_.folders.find(place.folder);
    if (folder == now_.folders.end()) throw std::logic_error(path + ": no such folder is recorded");
    const auto found = folder->second.find(place.name);
    place.inode = found == folder->second.end() ? kNoInode : found->second;
  }
  return place;
}

void RecordedDisk::Change(std::vector<EntryChange> entries, std::string text) {
  for (const EntryChange& entry : entries) {
    auto& folder = now_.folders.at(entry.folder);
    if (entry.inode == kNoInode) {
      folder.erase(entry.name);
    } else {
      folder[entry.name] = entry.inode;
    }
  }
  calls_.push_back(
      {.kind = DiskCall::Kind::kEntries, .entries = std::move(entries), .text = std::move(text)});
}

void RecordedDisk::Opened(int descriptor, const std::string& path, int flags) {
  Place place = Find(path);
  if (place.inode == kNoInode) {
    place.inode = ++last_;
    sizes_[place.inode] = 0;
    Change({{place.folder, place.name, place.inode}}, "create " + path);
  } else if ((flags & O_TRUNC) != 0) {
    sizes_[place.inode] = 0;
    calls_.push_back({.kind = DiskCall::Kind::kTruncate,
                      .inode = place.inode,
                      .entries = {},
                      .text = "truncate " + path});
  }
  const bool appends = (flags & O_APPEND) != 0;
  open_[descriptor] = {place.inode, appends ? sizes_[place.inode] : 0, path};
}

void RecordedDisk::Wrote(int descriptor, const void* bytes, std::size_t size) {
  const auto open = open_.find(descriptor);
  if (open == open_.end() || size == 0) return;
  calls_.push_back({.kind = DiskCall::Kind::kWrite,
                    .inode = open->second.inode,
                    .offset = open->second.offset,
                    .bytes = {static_cast<const char*>(bytes), size},
                    .entries = {},
                    .text = "write " + open->second.path});
  open->second.offset += size;
  sizes_[open->second.inode] = std::max(sizes_[open->second.inode], open->second.offset);
}

void RecordedDisk::Flushed(int descriptor) {
  const auto open = open_.find(descriptor);
  if (open == open_.end()) return;
  const bool folder = now_.folders.contains(open->second.inode);
  if (folder ? forgets_folder_flushes : forgets_flushes) return;
  calls_.push_back({.kind = folder ? DiskCall::Kind::kFlushFolder : DiskCall::Kind::kFlush,
                    .inode = open->second.inode,
                    .entries = {},
                    .text = "flush " + open->second.path});
}

void RecordedDisk::Renamed(const std::string& from, const std::string& to) {
  const Place old = Find(from);
  const Place fresh = Find(to);
  Change({{old.folder, old.name, kNoInode}, {fresh.folder, fresh.name, old.inode}},
         "rename " + from + " to " + to);
}

void RecordedDisk::Removed(const std::string& path) {
  const Place place = Find(path);
  if (place.inode != kNoInode) Change({{place.folder, place.name, kNoInode}}, "remove " + path);
}

void RecordedDisk::MadeFolder(const std::string& path) {
  const Place place = Find(path);
  now_.folders[++last_];
  Change({{place.folder, place.name, last_, true}}, "make " + path);
}

std::string RecordedDisk::PathOf(int descriptor) const {
  const auto open = open_.find(descriptor);
  return open == open_.end() ? "" : open->second.path;
}

namespace {

/// Decides which of the calls that were not flushed are kept.
class Kept {
 public:
  Kept(const std::vector<DiskCall>& calls, std::size_t count, std::mt19937_64& random)
      : count_(count), random_(random) {
    for (std::size_t i = 0; i < count; ++i) {
      if (calls[i].kind == DiskCall::Kind::kFlush) flushed_[calls[i].inode] = i;
      if (calls[i].kind == DiskCall::Kind::kFlushFolder) flushed_[calls[i].inode] = i;
    }
    const auto pick = [&](std::uint64_t below) { return random() % below; };
    entries_ = static_cast<How>(pick(3));
    bytes_ = static_cast<How>(pick(3));
    cut_ = pick(count + 1);
  }

  bool Keeps(std::size_t number, Inode flushed_with, bool is_entry) {
    const auto flush = flushed_.find(flushed_with);
    if (flush != flushed_.end() && flush->second > number) return true;
    switch (is_entry ? entries_ : bytes_) {
      case How::kNone:
        return false;
      case How::kFirst:
        return number < cut_;
      case How::kAny:
        return random_() % 2 == 0;
    }
    return false;
  }
  /// The bytes of a write that was not flushed.
  std::size_t Torn(std::size_t number, const DiskCall& call) {
    if (Keeps(number, call.inode, false)) return call.bytes.size();
    return bytes_ == How::kAny ? random_() % (call.bytes.size() + 1) : 0;
  }

 private:
  enum class How { kNone, kFirst, kAny };

  const std::size_t count_;
  std::mt19937_64& random_;
  std::map<Inode, std::size_t> flushed_;  ///< the last flush of each
  How entries_ = How::kNone;
  How bytes_ = How::kNone;
  std::size_t cut_ = 0;
};

}  // namespace

DiskTree CrashedDisk(const DiskTree& before, const std::vector<DiskCall>& calls, std::size_t count,
                     std::mt19937_64& random) {
  DiskTree tree = before;
  Kept kept(calls, count, random);
  for (std::size_t i = 0; i < count; ++i) {
    const DiskCall& call = calls[i];
    switch (call.kind) {
      case DiskCall::Kind::kWrite: {
        const std::size_t size = kept.Torn(i, call);
        std::string& file = tree.files[call.inode];
        if (size > 0) file.resize(std::max(file.size(), call.offset + size));
        std::copy_n(call.bytes.begin(), size,
                    file.begin() + static_cast<std::ptrdiff_t>(size > 0 ? call.offset : 0));
        break;
      }
      case DiskCall::Kind::kTruncate:
        if (kept.Keeps(i, call.inode, false)) tree.files[call.inode].clear();
        break;
      case DiskCall::Kind::kEntries:
        if (!kept.Keeps(i, call.entries.back().folder, true)) break;
        for (const EntryChange& entry : call.entries) {
          if (entry.inode == kNoInode) {
            tree.folders[entry.folder].erase(entry.name);
          } else {
            tree.folders[entry.folder][entry.name] = entry.inode;
          }
          if (entry.new_folder) tree.folders[entry.inode];
        }
        break;
      case DiskCall::Kind::kFlush:
      case DiskCall::Kind::kFlushFolder:
      case DiskCall::Kind::kMark:
        break;
    }
  }
  return tree;
}

}  // namespace troupe::testing

// These stand before the functions of the C library, in this program and in the libraries that it
// uses.

namespace {

using troupe::testing::recording;

template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// Calls `real` unless the disk fails, and `note` after it if it has succeeded.
template <class Real, class Note>
auto Recorded(const std::string& path, Real real, Note note) -> decltype(real()) {
  if (recording == nullptr || !recording->Has(path)) return real();
  errno = recording->ErrorOf(path);
  if (errno != 0) return -1;
  const auto result = real();
  if (result >= 0) note(*recording, result);
  return result;
}

std::string PathOf(int descriptor) {
  return recording == nullptr ? "" : recording->PathOf(descriptor);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  static auto* const real = Next<int(const char*, int, ...)>("open");
  va_list more;
  va_start(more, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : mode_t{0};
  va_end(more);
  // Files that are only read change nothing.
  const bool reads = (flags & O_ACCMODE) == O_RDONLY && (flags & O_DIRECTORY) == 0;
  if (reads) return real(path, flags, mode);
  return Recorded(
      path, [&] { return real(path, flags, mode); },
      [&](auto& disk, int descriptor) { disk.Opened(descriptor, path, flags); });
}

ssize_t write(int descriptor, const void* bytes, size_t size) {
  static auto* const real = Next<ssize_t(int, const void*, size_t)>("write");
  return Recorded(
      PathOf(descriptor), [&] { return real(descriptor, bytes, size); },
      [&](auto& disk, ssize_t count) {
        disk.Wrote(descriptor, bytes, static_cast<std::size_t>(count));
      });
}

int fsync(int descriptor) {
  static auto* const real = Next<int(int)>("fsync");
  // A real flush would cost time and prove nothing.
  if (PathOf(descriptor).empty()) return real(descriptor);
  return Recorded(
      PathOf(descriptor), [] { return 0; }, [&](auto& disk, int) { disk.Flushed(descriptor); });
}

int close(int descriptor) {
  static auto* const real = Next<int(int)>("close");
  if (recording != nullptr) recording->Closed(descriptor);
  return real(descriptor);
}

int rename(const char* from, const char* to) noexcept {
  static auto* const real = Next<int(const char*, const char*)>("rename");
  return Recorded(
      to, [&] { return real(from, to); }, [&](auto& disk, int) { disk.Renamed(from, to); });
}

int unlink(const char* path) noexcept {
  static auto* const real = Next<int(const char*)>("unlink");
  return Recorded(
      path, [&] { return real(path); }, [&](auto& disk, int) { disk.Removed(path); });
}

int remove(const char* path) noexcept {
  static auto* const real = Next<int(const char*)>("remove");
  return Recorded(
      path, [&] { return real(path); }, [&](auto& disk, int) { disk.Removed(path); });
}

int rmdir(const char* path) noexcept {
  static auto* const real = Next<int(const char*)>("rmdir");
  return Recorded(
      path, [&] { return real(path); }, [&](auto& disk, int) { disk.Removed(path); });
}

int unlinkat(int folder, const char* name, int flags) noexcept {
  static auto* const real = Next<int(int, const char*, int)>("unlinkat");
  std::string path = name;
  if (recording != nullptr && name[0] != '/') {
    std::error_code unknown;
    path =
        (std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(folder), unknown) / name)
            .string();
  }
  return Recorded(
      path, [&] { return real(folder, name, flags); },
      [&](auto& disk, int) { disk.Removed(path); });
}

int mkdir(const char* path, mode_t mode) noexcept {
  static auto* const real = Next<int(const char*, mode_t)>("mkdir");
  return Recorded(
      path, [&] { return real(path, mode); }, [&](auto& disk, int) { disk.MadeFolder(path); });
}

}  // extern "C"
