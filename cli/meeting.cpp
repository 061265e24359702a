#include "cli/meeting.hpp"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "cluster/run_key.hpp"
#include "cluster/socket.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "troupe-";
constexpr std::string_view kSuffix = "-XXXXXX";  // as mkdtemp wants it

/// The process in a folder's name; 0 for any other name.
pid_t MakerOf(const std::string& name) {
  if (name.rfind(kPrefix, 0) != 0 || name.size() < kPrefix.size() + kSuffix.size()) return 0;
  const char* const begin = name.data() + kPrefix.size();
  const char* const end = name.data() + name.size() - kSuffix.size();
  pid_t pid = 0;
  const auto [rest, error] = std::from_chars(begin, end, pid);
  return error == std::errc() && rest == end && *end == '-' && pid > 0 ? pid : 0;
}

/// The folder, open and locked; -1 when somebody else has it, or it is not a folder of this user.
int LockFolder(const std::string& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat found {};
  if (file < 0) return -1;
  if (fstat(file, &found) == 0 && found.st_uid == geteuid() &&
      flock(file, LOCK_EX | LOCK_NB) == 0) {
    return file;
  }
  close(file);
  return -1;
}

/// What killed processes have left. The lock is for containers that share the folder: their
/// processes have numbers that mean nothing here, but their locks hold.
void RemoveAbandoned(const fs::path& parent) {
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    const pid_t maker = MakerOf(entry->path().filename());
    if (maker == 0 || kill(maker, 0) == 0 || errno != ESRCH) continue;
    const int lock = LockFolder(entry->path());
    if (lock < 0) continue;
    std::error_code ignored;
    fs::remove_all(entry->path(), ignored);
    close(lock);
  }
}

}  // namespace

Meeting::Meeting(const fs::path& parent) {
  RemoveAbandoned(parent);
  std::string name(kPrefix);
  name += std::to_string(getpid());
  name += kSuffix;
  std::string folder = (parent / name).string();
  if (mkdtemp(folder.data()) == nullptr) {
    throw std::runtime_error(folder + ": cannot create: " + std::strerror(errno));
  }
  folder_ = folder;
  lock_ = LockFolder(folder_);
  key_file_ = folder_ + "/key";
  RunKey::Generate().WriteFile(key_file_);
}

Meeting::~Meeting() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  if (lock_ >= 0) close(lock_);
}

std::string Meeting::FreeAddress() {
  return ToString(Socket::Listen({"127.0.0.1", 0}).local_address());
}

}  // namespace troupe
