#include "cluster/wake_up.hpp"

#include <cerrno>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cluster/socket.hpp"
#include "cluster/text.hpp"

namespace troupe {

WakeUp::WakeUp() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ < 0) throw SocketError("cannot make an eventfd: " + SystemWords(errno), errno);
}

WakeUp::~WakeUp() { close(fd_); }

void WakeUp::Signal() noexcept {
  // Cannot fail: the only other outcome is a full counter, which is also readable.
  [[maybe_unused]] const int ignored = eventfd_write(fd_, 1);
}

void WakeUp::Clear() noexcept {
  eventfd_t count = 0;
  [[maybe_unused]] const int ignored = eventfd_read(fd_, &count);
}

}  // namespace troupe
