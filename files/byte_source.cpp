#include "files/byte_source.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace troupe {
namespace {

class LocalFile : public ByteSource {
 public:
  explicit LocalFile(std::string path) : path_(std::move(path)) {
    // Without O_NONBLOCK, opening a pipe would wait for a writer.
    file_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file_ < 0) Fail(std::string("cannot open: ") + std::strerror(errno));
    struct stat status = {};
    const bool known = fstat(file_, &status) == 0;
    const int error = errno;
    if (known && S_ISREG(status.st_mode)) {
      size_ = static_cast<std::uint64_t>(status.st_size);
      return;
    }
    close(file_);
    Fail(known ? "not a regular file" : std::string("cannot read: ") + std::strerror(error));
  }
  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;
  ~LocalFile() override { close(file_); }

  std::uint64_t size() const override { return size_; }

  void Read(std::uint64_t offset, void* data, std::size_t count) const override {
    auto* bytes = static_cast<std::byte*>(data);
    while (count > 0) {
      const ssize_t got = pread(file_, bytes, count, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) Fail(std::string("cannot read: ") + std::strerror(errno));
      if (got == 0) Fail("file has shrunk to " + std::to_string(offset) + " bytes");
      bytes += got;
      count -= static_cast<std::size_t>(got);
      offset += static_cast<std::uint64_t>(got);
    }
  }

 private:
  [[noreturn]] void Fail(const std::string& text) const {
    throw std::runtime_error(path_ + ": " + text);
  }

  std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace

std::shared_ptr<const ByteSource> OpenFile(const std::string& path) {
  return std::make_shared<const LocalFile>(path);
}

}  // namespace troupe
