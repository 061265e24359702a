#include "transport/tcp/link.hpp"

#include <array>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <system_error>

namespace troupe {
namespace {

/// Whether a failed call should be retried later. Throws std::runtime_error if not.
bool WouldBlock() {
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return true;
  throw std::runtime_error(std::generic_category().message(errno));
}

}  // namespace

void TcpLink::Read() {
  for (std::size_t total = 0; total < kTurnBytes;) {
    std::array<iovec, 2> space = reader_.Space();
    msghdr message{};
    message.msg_iov = space[0].iov_len > 0 ? space.data() : space.data() + 1;
    message.msg_iovlen = space[0].iov_len > 0 ? 2 : 1;
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
    if (got < 0 && WouldBlock()) return;
    if (got == 0) throw std::runtime_error("it closed the connection");
    const auto size = static_cast<std::size_t>(got);
    reader_.Filled(size);
    if (size < space[0].iov_len + space[1].iov_len) return;  // all available bytes are read
    total += size;
  }
}

bool TcpLink::Write(const std::function<void(OutMessage)>& done) {
  blocked_ = false;
  std::size_t total = 0;
  while (total < kTurnBytes) {
    std::array<iovec, 48> space;
    msghdr message{};
    message.msg_iov = space.data();
    message.msg_iovlen = writer_.Gather(space);
    if (message.msg_iovlen == 0) break;
    const ssize_t written = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (written < 0 && WouldBlock()) {
      blocked_ = true;
      break;
    }
    writer_.Written(static_cast<std::size_t>(written), done);
    total += static_cast<std::size_t>(written);
  }
  return total > 0;
}

}  // namespace troupe
