#include "trace/lost_pages.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <sys/mman.h>

namespace troupe {
namespace {

/// Global, because a signal handler cannot reach anything else. A free entry begins at 0.
struct Guarded {
  std::atomic<std::uintptr_t> begin = 0;
  std::atomic<std::size_t> size = 0;
};
std::array<Guarded, 64> all;
std::atomic<bool> any_lost = false;
std::mutex changing;

std::uintptr_t AddressOf(const std::byte* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

/// Replaces all pages of a mapping at once: half a file is useless.
bool Replace(Guarded& guarded) {
  void* const begin = reinterpret_cast<void*>(guarded.begin.load());
  any_lost = true;
  return mmap(begin, guarded.size, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS,
              -1, 0) != MAP_FAILED;
}

void OnBusError(int number, siginfo_t* info, void*) {
  const int kept = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Guarded& guarded : all) {
    const std::uintptr_t begin = guarded.begin;
    if (begin == 0 || address < begin || address - begin >= guarded.size) continue;
    if (!Replace(guarded)) break;
    errno = kept;
    return;
  }
  std::signal(number, SIG_DFL);  // not a guarded page: the repeated fault ends the process
}

void HandleBusErrors() {
  struct sigaction action {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace

void GuardPages(std::byte* begin, std::size_t size) {
  const std::lock_guard lock(changing);
  static const bool handled = (HandleBusErrors(), true);
  static_cast<void>(handled);
  for (Guarded& guarded : all) {
    if (guarded.begin != 0) continue;
    guarded.size = size;
    guarded.begin = AddressOf(begin);
    return;
  }
}

void UnguardPages(const std::byte* begin) {
  const std::lock_guard lock(changing);
  for (Guarded& guarded : all) {
    if (guarded.begin == AddressOf(begin)) guarded.begin = 0;
  }
}

bool AnyPagesLost() { return any_lost; }

}  // namespace troupe
