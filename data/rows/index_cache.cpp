#include "data/rows/index_cache.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <stdexcept>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

#include "files/file_error.hpp"
#include "files/output_file.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".rows";
constexpr const char* kBuilding = ".building";

std::string WithHome(const std::string& folder) {
  if (!folder.starts_with("~")) return folder;
  if (folder != "~" && !folder.starts_with("~/")) {
    throw std::runtime_error(
        folder + ": ~USER is not supported; state a path, or one below ~/ (data.cache)");
  }
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home == '\0')
    throw std::runtime_error(folder + ": HOME is not set; state another folder");
  return home + folder.substr(1);
}

/// Returns the inode of a file; 0: there is none.
ino_t InodeOf(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

/// Returns whether `file` is still the file at `path`.
bool HasName(int file, const std::string& path) {
  struct stat own = {};
  struct stat named = {};
  return fstat(file, &own) == 0 && stat(path.c_str(), &named) == 0 &&
         std::tie(own.st_ino, own.st_dev) == std::tie(named.st_ino, named.st_dev);
}

/// A file held under an exclusive lock.
class LockedFile {
 public:
  /// Calls `waits` and waits if another process or thread has it.
  LockedFile(const std::string& path, const std::function<void()>& waits) : path_(path) {
    for (;;) {
      file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
      if (file_ < 0) Fail("cannot be made (data.cache)");
      if (flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK && waits) waits();
      while (flock(file_, LOCK_EX) != 0) {
        if (errno != EINTR) Fail("cannot be locked");
      }
      if (HasName(file_, path_)) return;
      close(file_);  // the previous holder has published it
    }
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  ~LockedFile() {
    flock(file_, LOCK_UN);  // copies of the descriptor would keep the lock
    close(file_);
  }

  /// Returns a descriptor of the file for another owner.
  int Copy() const {
    const int copy = fcntl(file_, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) Fail("cannot be opened");
    return copy;
  }
  void Publish(const std::string& as) const {
    if (fsync(file_) != 0 || rename(path_.c_str(), as.c_str()) != 0) Fail("cannot be written");
  }
  void Remove() const { unlink(path_.c_str()); }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw std::runtime_error(path_ + ": " + what + ": " + std::strerror(errno));
  }

  std::string path_;
  int file_ = -1;
};

/// Calls `use` while no job fills the file, and returns its result; false if one does.
bool WhileUnlocked(const std::string& path, const std::function<bool()>& use) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return false;
  const bool result = flock(file, LOCK_EX | LOCK_NB) == 0 && HasName(file, path) && use();
  close(file);
  return result;
}

}  // namespace

IndexCache::IndexCache(const std::string& folder, std::int64_t limit_bytes)
    : folder_(WithHome(folder)), limit_bytes_(limit_bytes) {
  MakeFolders(folder_);
}

std::shared_ptr<const RowIndex> IndexCache::Find(const std::string& key,
                                                 std::size_t num_encoders) const {
  const std::string path = PathOf(key);
  if (InodeOf(path) == 0) return nullptr;
  try {
    auto index = std::make_shared<const RowIndex>(path, num_encoders);
    utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // it was used now
    return index;
  } catch (const std::runtime_error&) {
    return nullptr;  // damaged: it is made anew
  }
}

std::shared_ptr<const RowIndex> IndexCache::Get(
    const std::string& key, std::size_t num_encoders, const std::function<void(RowIndex&)>& build,
    const std::function<bool(const RowIndex&)>& is_final,
    const std::function<void()>& waits) const {
  const std::string path = PathOf(key);
  const ino_t seen = InodeOf(path);
  auto index = Find(key, num_encoders);
  try {
    if (index != nullptr && (!is_final || is_final(*index))) return index;
  } catch (const IndexError&) {  // damaged: it is made anew
  }
  const LockedFile file(path + kBuilding, waits);
  if (InodeOf(path) != seen) {  // another has built it meanwhile
    index = Find(key, num_encoders);
    if (index != nullptr) {
      file.Remove();
      return index;
    }
  }
  std::shared_ptr<RowIndex> made;  // it stays open: others may remove its file
  try {
    made = std::make_shared<RowIndex>(file.Copy(), num_encoders);
    build(*made);
  } catch (const IndexError& error) {
    file.Remove();
    throw std::runtime_error(path + ": " + error.what() + " (data.cache)");
  } catch (...) {
    file.Remove();
    throw;
  }
  file.Publish(path);
  MakeRoom(path);
  return made;
}

void IndexCache::MakeRoom(const std::string& newest) const {
  struct Entry {
    fs::file_time_type used;
    std::int64_t size = 0;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::int64_t total = 0;
  std::error_code failure;
  fs::directory_iterator file(folder_, failure);
  for (; !failure && file != fs::directory_iterator(); file.increment(failure)) {
    const fs::path ending = file->path().extension();
    if (ending != kEnding && ending != kBuilding) continue;
    if (ending == kBuilding && !WhileUnlocked(file->path(), [] { return true; })) continue;
    std::error_code gone;  // others remove files, too
    Entry entry{file->last_write_time(gone), static_cast<std::int64_t>(file->file_size(gone)),
                file->path()};
    if (gone) continue;
    total += entry.size;
    entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& entry : entries) {
    if (total <= limit_bytes_) return;
    if (entry.path == newest) continue;  // it is in use
    const auto remove = [&] { return fs::remove(entry.path, failure); };
    const bool is_part = entry.path.extension() == kBuilding;
    if (is_part ? WhileUnlocked(entry.path, remove) : remove()) total -= entry.size;
  }
}

}  // namespace troupe
