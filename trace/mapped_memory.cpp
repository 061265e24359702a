#include "trace/mapped_memory.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

#include "files/output_file.hpp"

namespace troupe {
namespace {

// Access to a truncated page of a mapped file raises SIGBUS, which would end the process. A guarded
// page becomes ordinary memory instead.

/// Global, because a signal handler cannot reach anything else. A free entry begins at 0.
struct Guarded {
  std::atomic<std::uintptr_t> begin = 0;
  std::atomic<std::size_t> size = 0;
  std::atomic<bool> written = false;  ///< by this process
  std::atomic<bool> lost = false;
};
std::array<Guarded, 64> guarded_pages;
std::atomic<bool> any_lost = false;
std::mutex guarded_pages_mutex;

std::uintptr_t AddressOf(const std::byte* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

/// Replaces all pages of a mapping at once: half a file is useless.
bool Replace(Guarded& guarded) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an atomic integer, read in a signal handler
  void* const begin = reinterpret_cast<void*>(guarded.begin.load());
  guarded.lost = true;
  if (guarded.written) any_lost = true;
  return mmap(begin, guarded.size, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS,
              -1, 0) != MAP_FAILED;
}

void OnBusError(int number, siginfo_t* info, void*) {
  const int kept = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Guarded& guarded : guarded_pages) {
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

/// Guards at most 64 mappings at a time, and ignores more.
void GuardPages(std::byte* begin, std::size_t size, bool written) {
  const std::lock_guard lock(guarded_pages_mutex);
  static const bool handled = (HandleBusErrors(), true);
  static_cast<void>(handled);
  for (Guarded& guarded : guarded_pages) {
    if (guarded.begin != 0) continue;
    guarded.size = size;
    guarded.written = written;
    guarded.lost = false;
    guarded.begin = AddressOf(begin);
    return;
  }
}

/// Call it before the pages are unmapped.
void UnguardPages(const std::byte* begin) {
  const std::lock_guard lock(guarded_pages_mutex);
  for (Guarded& guarded : guarded_pages) {
    if (guarded.begin == AddressOf(begin)) guarded.begin = 0;
  }
}

[[noreturn]] void Fail(const std::string& path, const std::string& what, int error) {
  throw std::runtime_error((path.empty() ? "trace" : path) + ": " + what + ": " +
                           std::strerror(error));
}

int Create(const std::string& path, std::size_t size) {
  // Readers of an earlier run's file keep that file.
  const int file = CreateFile(path);
  const int error = posix_fallocate(file, 0, static_cast<off_t>(size));
  if (error != 0) {
    close(file);
    unlink(path.c_str());
    throw std::runtime_error(path + ": cannot reserve " + std::to_string(size >> 20) +
                             " MiB: " + std::strerror(error) + " (see trace.buffer_mib)");
  }
  return file;
}

}  // namespace

MappedMemory::MappedMemory(const std::string& path, std::size_t size) : size_(size) {
  const int file = path.empty() ? -1 : Create(path, size);
  const int flags = path.empty() ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, file, 0);
  const int error = errno;
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) Fail(path, "cannot map " + std::to_string(size >> 20) + " MiB", error);
  data_ = static_cast<std::byte*>(memory);
  if (!path.empty()) GuardPages(data_, size_, true);
}

MappedMemory MappedMemory::Open(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) Fail(path, "cannot open", errno);
  const off_t end = lseek(file, 0, SEEK_END);
  MappedMemory memory;
  memory.size_ = end > 0 ? static_cast<std::size_t>(end) : 0;
  void* mapped = nullptr;
  if (memory.size_ > 0) mapped = mmap(nullptr, memory.size_, PROT_READ, MAP_SHARED, file, 0);
  const int error = errno;
  close(file);
  if (end < 0 || mapped == MAP_FAILED) {
    memory.size_ = 0;
    Fail(path, "cannot be read", error);
  }
  memory.data_ = static_cast<std::byte*>(mapped);
  if (memory.data_ != nullptr) GuardPages(memory.data_, memory.size_, false);
  return memory;
}

bool MappedMemory::lost() const {
  for (const Guarded& guarded : guarded_pages) {
    if (guarded.begin == AddressOf(data_)) return guarded.lost;
  }
  return false;
}

MappedMemory::~MappedMemory() {
  if (data_ == nullptr) return;
  UnguardPages(data_);
  munmap(data_, size_);
}

bool AnyPagesLost() { return any_lost; }

}  // namespace troupe
