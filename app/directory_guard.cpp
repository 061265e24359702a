#include "app/directory_guard.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <optional>
#include <sys/stat.h>
#include <thread>
#include <utility>

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kLook{200};
constexpr int kLooksPerAnswer = 5;
/// A file server may miss a directory for a moment.
constexpr int kMissesToBelieve = 2;

struct Identity {
  dev_t device = 0;
  ino_t number = 0;
  bool operator==(const Identity&) const = default;
};

/// Returns nothing if there is no such directory, and `last` if the system reports another error.
std::optional<Identity> IdentityOf(const std::string& directory, const Identity& last) {
  struct stat found {};
  if (stat(directory.c_str(), &found) == 0) return Identity{found.st_dev, found.st_ino};
  if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
  return last;
}

void Watch(const std::string& directory, const std::weak_ptr<AbortSignal>& abort,
           const std::atomic<bool>& ended) {
  const auto first = IdentityOf(directory, {});
  if (!first) return;
  int misses = 0;
  for (int look = 1; !ended; ++look) {
    std::this_thread::sleep_for(kLook);
    if (look % kLooksPerAnswer != 0) continue;
    misses = IdentityOf(directory, *first) == first ? 0 : misses + 1;
    if (misses < kMissesToBelieve || ended) continue;
    if (const auto signal = abort.lock()) {
      signal->Raise(directory +
                    ": the run directory was deleted or moved during the run; nothing more of it "
                    "can be saved");
    }
    return;
  }
}

}  // namespace

std::shared_ptr<void> GuardDirectory(const std::string& directory,
                                     std::shared_ptr<AbortSignal> abort) {
  if (directory.empty()) return nullptr;
  auto ended = std::make_shared<std::atomic<bool>>(false);
  std::thread([directory, weak = std::weak_ptr(abort), ended] {
    Watch(directory, weak, *ended);
  }).detach();
  return std::shared_ptr<void>(nullptr, [ended](void*) { ended->store(true); });
}

}  // namespace troupe
