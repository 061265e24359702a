#include "trace/mapped_memory.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

#include "files/output_file.hpp"
#include "trace/lost_pages.hpp"

namespace troupe {
namespace {

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
  if (!path.empty()) GuardPages(data_, size_);
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
  if (memory.data_ != nullptr) GuardPages(memory.data_, memory.size_);
  return memory;
}

MappedMemory::~MappedMemory() {
  if (data_ == nullptr) return;
  UnguardPages(data_);
  munmap(data_, size_);
}

}  // namespace troupe
