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
  const char* const home = std::getenv("HOME");
  if (home == nullptr || !(folder == "~" || folder.starts_with("~/"))) return folder;
  return home + folder.substr(1);
}

/// A file that this process alone fills, as long as it is open.
class LockedFile {
 public:
  /// Waits while another process or thread has it.
  explicit LockedFile(const std::string& path) : path_(path) {
    for (;;) {
      file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
      if (file_ < 0) Fail("cannot be made");
      while (flock(file_, LOCK_EX) != 0) {
        if (errno != EINTR) Fail("cannot be locked");
      }
      if (HasName()) return;
      close(file_);  // who had it has finished it
    }
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  ~LockedFile() { close(file_); }

  /// Returns a descriptor of the file, emptied, for another owner.
  int Emptied() const {
    if (ftruncate(file_, 0) != 0) Fail("cannot be written");
    const int copy = fcntl(file_, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) Fail("cannot be opened");
    return copy;
  }
  void Publish(const std::string& as) const {
    if (fsync(file_) != 0 || rename(path_.c_str(), as.c_str()) != 0) Fail("cannot be written");
  }
  void Remove() const { unlink(path_.c_str()); }

 private:
  bool HasName() const {
    struct stat own = {};
    struct stat named = {};
    return fstat(file_, &own) == 0 && stat(path_.c_str(), &named) == 0 &&
           std::tie(own.st_ino, own.st_dev) == std::tie(named.st_ino, named.st_dev);
  }
  [[noreturn]] void Fail(const std::string& what) const {
    throw std::runtime_error(path_ + ": " + what + ": " + std::strerror(errno));
  }

  std::string path_;
  int file_ = -1;
};

}  // namespace

IndexCache::IndexCache(const std::string& folder, std::int64_t limit_bytes)
    : folder_(WithHome(folder)), limit_bytes_(limit_bytes) {
  MakeFolders(folder_);
}

std::shared_ptr<const RowIndex> IndexCache::Find(const std::string& key,
                                                 std::size_t num_encoders) const {
  const std::string path = PathOf(key);
  if (access(path.c_str(), R_OK) != 0) return nullptr;
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
    const std::function<bool(const RowIndex&)>& is_final) const {
  auto index = Find(key, num_encoders);
  if (index != nullptr && (!is_final || is_final(*index))) return index;
  const LockedFile file(PathOf(key) + kBuilding);
  const auto before = std::exchange(index, Find(key, num_encoders));
  if (before == nullptr && index != nullptr) {  // another has made it meanwhile
    file.Remove();
    return index;
  }
  std::shared_ptr<RowIndex> made;  // it stays open: others may remove its file
  try {
    made = std::make_shared<RowIndex>(file.Emptied(), num_encoders);
    build(*made);
  } catch (...) {
    file.Remove();
    throw;
  }
  file.Publish(PathOf(key));
  RemoveOldest();
  return made;
}

void IndexCache::RemoveOldest() const {
  struct Entry {
    fs::file_time_type used;
    std::int64_t size = 0;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::int64_t total = 0;
  std::error_code ignored;  // others remove files, too
  for (const auto& file : fs::directory_iterator(folder_, ignored)) {
    if (file.path().extension() != kEnding) continue;
    Entry entry{file.last_write_time(ignored), static_cast<std::int64_t>(file.file_size(ignored)),
                file.path()};
    total += entry.size;
    entries.push_back(std::move(entry));
  }
  if (total <= limit_bytes_) return;
  std::ranges::sort(entries, {}, &Entry::used);
  // The newest stays: it is in use.
  for (std::size_t i = 0; i + 1 < entries.size() && total > limit_bytes_; ++i) {
    fs::remove(entries[i].path, ignored);
    total -= entries[i].size;
  }
}

}  // namespace troupe
