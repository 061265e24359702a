// Functions of the C library by which simulated threads use sockets, pipes, event counters and epoll.
#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/tcp.h>
#include <memory>
#include <poll.h>
#include <string>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/simulation/kernel.hpp"
#include "tests/simulation/network.hpp"
#include "tests/simulation/output.hpp"
#include "tests/simulation/real_calls.hpp"

using namespace troupe::testing;  // NOLINT: the functions of this file are those of the C library

namespace {

constexpr std::uint8_t kEstablished = 1;
constexpr std::uint8_t kClosed = 7;
constexpr std::uint32_t kSegmentBytes = 1448;

SimThread* Here() { return Kernel::Here(); }
Kernel& World() { return Kernel::Current(); }

int Fails(int error) {
  errno = error;
  return -1;
}

int Opened(const std::shared_ptr<Endpoint>& endpoint, bool is_blocking) {
  const SimProcess* const process = Here()->process;
  const OutsideOfWorld outside;
  endpoint->is_blocking = is_blocking;
  return Network::Current().Open(endpoint, process);
}

/// What `descriptor` means here; null: the real one.
std::shared_ptr<Endpoint> EndpointOf(int descriptor) {
  return Here() == nullptr ? nullptr : Network::Current().Find(descriptor);
}
template <class Kind>
std::shared_ptr<Kind> As(int descriptor) {
  return std::dynamic_pointer_cast<Kind>(EndpointOf(descriptor));
}

SimTime DeadlineOf(int milliseconds) {
  return milliseconds < 0 ? kNever : World().now() + Ms(milliseconds);
}

ssize_t ReadFrom(Endpoint& endpoint, void* bytes, std::size_t size, int flags) {
  World().MayYield();
  for (;;) {
    {
      const OutsideOfWorld outside;
      const ssize_t count = endpoint.Read(static_cast<char*>(bytes), size, (flags & MSG_PEEK) != 0);
      const bool waits =
          count < 0 && errno == EAGAIN && endpoint.is_blocking && (flags & MSG_DONTWAIT) == 0;
      if (!waits) return count;
    }
    World().Wait([&] { return (endpoint.Events() & (POLLIN | POLLHUP | POLLERR)) != 0; });
  }
}

ssize_t WriteTo(Endpoint& endpoint, const void* bytes, std::size_t size) {
  World().BeforeCall("send");
  World().MayYield();
  for (;;) {
    {
      const OutsideOfWorld outside;
      const ssize_t count = endpoint.Write(static_cast<const char*>(bytes), size);
      if (count >= 0 || errno != EAGAIN || !endpoint.is_blocking) return count;
    }
    World().Wait([&] { return (endpoint.Events() & (POLLOUT | POLLHUP | POLLERR)) != 0; });
  }
}

/// Calls `move` for the parts of a message until one is not moved whole. Returns the sum, or the first
/// result if that is an error.
template <class Move>
ssize_t OverParts(const msghdr& message, Move move) {
  ssize_t total = 0;
  for (std::size_t i = 0; i < message.msg_iovlen; ++i) {
    const iovec& part = message.msg_iov[i];
    if (part.iov_len == 0) continue;
    const ssize_t count = move(part.iov_base, part.iov_len);
    if (count < 0) return total > 0 ? total : count;
    total += count;
    if (count < static_cast<ssize_t>(part.iov_len)) break;
  }
  return total;
}

void Put(const sockaddr_in& from, sockaddr* address, socklen_t* length) {
  if (address == nullptr || length == nullptr) return;
  std::memcpy(address, &from, std::min<std::size_t>(*length, sizeof from));
  *length = sizeof from;
}

bool Put(const void* from, std::size_t size, void* value, socklen_t* length) {
  std::memcpy(value, from, std::min<std::size_t>(*length, size));
  *length = static_cast<socklen_t>(std::min<std::size_t>(*length, size));
  return true;
}

tcp_info InfoOf(const Connection& connection) {
  tcp_info info{};
  info.tcpi_state = connection.is_connected() ? kEstablished : kClosed;
  info.tcpi_snd_mss = kSegmentBytes;
  info.tcpi_snd_wnd = connection.peer_takes_bytes() ? 1 << 16 : 0;
  info.tcpi_unacked = connection.num_sent() > connection.num_acknowledged() ? 1 : 0;
  info.tcpi_bytes_acked = connection.num_acknowledged();
  info.tcpi_segs_in = connection.num_segments();
  return info;
}

int Accepted(int descriptor, sockaddr* address, socklen_t* length, int flags) {
  const auto listener = As<Listener>(descriptor);
  if (!listener) return Fails(EINVAL);
  World().MayYield();
  std::shared_ptr<Connection> connection;
  {
    const OutsideOfWorld outside;
    connection = listener->Accept();
  }
  if (!connection) return Fails(EAGAIN);
  Put(connection->peer(), address, length);
  return Opened(connection, (flags & SOCK_NONBLOCK) == 0);
}

/// Whether a file takes no more bytes because the disk is full. Sets errno then.
bool IsRefused(int descriptor) {
  if (!World().is_disk_full || descriptor <= STDERR_FILENO) return false;
  errno = ENOSPC;
  return true;
}

}  // namespace

extern "C" {

int socket(int family, int type, int protocol) noexcept {
  static const auto real = Real<int(int, int, int)>("socket");
  if (Here() == nullptr || Here()->process == nullptr) return real(family, type, protocol);
  if (family != AF_INET || (type & 0xf) != SOCK_STREAM) return Fails(EAFNOSUPPORT);
  return Opened(std::make_shared<NewSocket>(Here()->process->machine), (type & SOCK_NONBLOCK) == 0);
}

int bind(int descriptor, const sockaddr* address, socklen_t length) noexcept {
  static const auto real = Real<int(int, const sockaddr*, socklen_t)>("bind");
  if (Here() == nullptr) return real(descriptor, address, length);
  const auto made = As<NewSocket>(descriptor);
  if (!made) return Fails(EINVAL);
  std::memcpy(&made->local, address, sizeof made->local);
  return Network::Current().Bind(made->machine(), &made->local) ? 0 : -1;
}

int listen(int descriptor, int backlog) noexcept {
  static const auto real = Real<int(int, int)>("listen");
  if (Here() == nullptr) return real(descriptor, backlog);
  const auto made = As<NewSocket>(descriptor);
  if (!made) return Fails(EINVAL);
  World().BeforeCall("listen");
  if (!Network::Current().Bind(made->machine(), &made->local)) return -1;
  Network::Current().Replace(descriptor, std::make_shared<Listener>(made->machine(), made->local));
  return 0;
}

int accept4(int descriptor, sockaddr* address, socklen_t* length, int flags) {
  static const auto real = Real<int(int, sockaddr*, socklen_t*, int)>("accept4");
  return Here() == nullptr ? real(descriptor, address, length, flags)
                           : Accepted(descriptor, address, length, flags);
}

int accept(int descriptor, sockaddr* address, socklen_t* length) {
  static const auto real = Real<int(int, sockaddr*, socklen_t*)>("accept");
  return Here() == nullptr ? real(descriptor, address, length)
                           : Accepted(descriptor, address, length, 0);
}

int connect(int descriptor, const sockaddr* address, socklen_t length) {
  static const auto real = Real<int(int, const sockaddr*, socklen_t)>("connect");
  if (Here() == nullptr) return real(descriptor, address, length);
  const auto made = As<NewSocket>(descriptor);
  if (!made || address->sa_family != AF_INET) return Fails(EINVAL);
  World().BeforeCall("connect");
  const OutsideOfWorld outside;
  sockaddr_in peer{};
  std::memcpy(&peer, address, sizeof peer);
  const auto connection =
      std::make_shared<Connection>(made->machine(), Network::Current().AddressOf(made->machine()));
  Network::Current().Replace(descriptor, connection);
  connection->Connect(peer);
  return Fails(EINPROGRESS);
}

int shutdown(int descriptor, int how) noexcept {
  static const auto real = Real<int(int, int)>("shutdown");
  if (Here() == nullptr) return real(descriptor, how);
  const auto connection = As<Connection>(descriptor);
  if (!connection) return Fails(ENOTCONN);
  const OutsideOfWorld outside;
  if (how != SHUT_RD) connection->FinishWriting();
  return 0;
}

int getsockname(int descriptor, sockaddr* address, socklen_t* length) noexcept {
  static const auto real = Real<int(int, sockaddr*, socklen_t*)>("getsockname");
  if (Here() == nullptr) return real(descriptor, address, length);
  if (const auto connection = As<Connection>(descriptor)) {
    Put(connection->local(), address, length);
  } else if (const auto listener = As<Listener>(descriptor)) {
    Put(listener->local(), address, length);
  } else if (const auto made = As<NewSocket>(descriptor)) {
    Put(made->local, address, length);
  } else {
    return Fails(ENOTSOCK);
  }
  return 0;
}

int getpeername(int descriptor, sockaddr* address, socklen_t* length) noexcept {
  static const auto real = Real<int(int, sockaddr*, socklen_t*)>("getpeername");
  if (Here() == nullptr) return real(descriptor, address, length);
  const auto connection = As<Connection>(descriptor);
  if (!connection || !connection->is_connected()) return Fails(ENOTCONN);
  Put(connection->peer(), address, length);
  return 0;
}

int getsockopt(int descriptor, int level, int option, void* value, socklen_t* length) noexcept {
  static const auto real = Real<int(int, int, int, void*, socklen_t*)>("getsockopt");
  if (Here() == nullptr) return real(descriptor, level, option, value, length);
  const auto connection = As<Connection>(descriptor);
  // /proc/self/fd names the descriptors of all processes of this world.
  const bool is_own = Network::Current().OwnerOf(descriptor) == Here()->process;
  if (!connection || !is_own) return Fails(ENOTSOCK);
  if (level == SOL_SOCKET && option == SO_ERROR) {
    const int error = connection->TakeError();
    return Put(&error, sizeof error, value, length) ? 0 : -1;
  }
  if (level == IPPROTO_TCP && option == TCP_INFO) {
    const tcp_info info = InfoOf(*connection);
    return Put(&info, sizeof info, value, length) ? 0 : -1;
  }
  const int size = 1 << 16;
  return Put(&size, sizeof size, value, length) ? 0 : -1;
}

int setsockopt(int descriptor, int level, int option, const void* value,
               socklen_t length) noexcept {
  static const auto real = Real<int(int, int, int, const void*, socklen_t)>("setsockopt");
  if (Here() == nullptr) return real(descriptor, level, option, value, length);
  const auto connection = As<Connection>(descriptor);
  if (connection && level == SOL_SOCKET && option == SO_KEEPALIVE) {
    const OutsideOfWorld outside;
    connection->KeepAlive();
  }
  return EndpointOf(descriptor) ? 0 : Fails(ENOTSOCK);
}

int fcntl(int descriptor, int command, ...) {
  va_list list;
  va_start(list, command);
  const long argument = va_arg(list, long);
  va_end(list);
  static const auto real = Real<int(int, int, ...)>("fcntl");
  const auto endpoint = EndpointOf(descriptor);
  if (!endpoint) return real(descriptor, command, argument);
  switch (command) {
    case F_DUPFD_CLOEXEC:
    case F_DUPFD:
      return Opened(endpoint, endpoint->is_blocking);
    case F_GETFL:
      return endpoint->is_blocking ? O_RDWR : O_RDWR | O_NONBLOCK;
    case F_SETFL:
      endpoint->is_blocking = (argument & O_NONBLOCK) == 0;
      return 0;
    default:
      return 0;
  }
}

int close(int descriptor) {
  SimThread* const here = Here();
  if (here == nullptr) return RealClose(descriptor);
  {
    const OutsideOfWorld outside;
    if (Network::Current().Close(descriptor)) return 0;
  }
  if (here->process != nullptr) std::erase(here->process->files, descriptor);
  return RealClose(descriptor);
}

// Bytes.

ssize_t read(int descriptor, void* bytes, size_t size) {
  static const auto real = Real<ssize_t(int, void*, size_t)>("read");
  const auto endpoint = EndpointOf(descriptor);
  return endpoint ? ReadFrom(*endpoint, bytes, size, 0) : real(descriptor, bytes, size);
}

ssize_t recv(int descriptor, void* bytes, size_t size, int flags) {
  static const auto real = Real<ssize_t(int, void*, size_t, int)>("recv");
  const auto endpoint = EndpointOf(descriptor);
  return endpoint ? ReadFrom(*endpoint, bytes, size, flags) : real(descriptor, bytes, size, flags);
}

ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
  static const auto real = Real<ssize_t(int, msghdr*, int)>("recvmsg");
  const auto endpoint = EndpointOf(descriptor);
  if (!endpoint) return real(descriptor, message, flags);
  return OverParts(*message, [&](void* bytes, std::size_t size) {
    return ReadFrom(*endpoint, bytes, size, flags);
  });
}

ssize_t write(int descriptor, const void* bytes, size_t size) {
  static const auto real = Real<ssize_t(int, const void*, size_t)>("write");
  SimThread* const here = Here();
  if (here == nullptr || here->process == nullptr) return real(descriptor, bytes, size);
  if (TakesOutput(descriptor, {static_cast<const char*>(bytes), size})) {
    return static_cast<ssize_t>(size);
  }
  const auto endpoint = EndpointOf(descriptor);
  if (endpoint) return WriteTo(*endpoint, bytes, size);
  World().BeforeCall("write");
  return IsRefused(descriptor) ? -1 : real(descriptor, bytes, size);
}

ssize_t pwrite(int descriptor, const void* bytes, size_t size, off_t offset) {
  static const auto real = Real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  if (Here() == nullptr || Here()->process == nullptr) {
    return real(descriptor, bytes, size, offset);
  }
  World().BeforeCall("pwrite");
  return IsRefused(descriptor) ? -1 : real(descriptor, bytes, size, offset);
}

ssize_t send(int descriptor, const void* bytes, size_t size, int flags) {
  static const auto real = Real<ssize_t(int, const void*, size_t, int)>("send");
  const auto endpoint = EndpointOf(descriptor);
  return endpoint ? WriteTo(*endpoint, bytes, size) : real(descriptor, bytes, size, flags);
}

ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
  static const auto real = Real<ssize_t(int, const msghdr*, int)>("sendmsg");
  const auto endpoint = EndpointOf(descriptor);
  if (!endpoint) return real(descriptor, message, flags);
  return OverParts(*message,
                   [&](void* bytes, std::size_t size) { return WriteTo(*endpoint, bytes, size); });
}

// Waiting for descriptors.

int poll(pollfd* entries, nfds_t count, int milliseconds) {
  static const auto real = Real<int(pollfd*, nfds_t, int)>("poll");
  if (Here() == nullptr) return real(entries, count, milliseconds);
  std::vector<std::shared_ptr<Endpoint>> endpoints;
  for (nfds_t i = 0; i < count; ++i) {
    entries[i].revents = 0;
    endpoints.push_back(entries[i].fd < 0 ? nullptr : Network::Current().Find(entries[i].fd));
  }
  const auto look = [&endpoints, entries] {
    int found = 0;
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      if (!endpoints[i]) continue;
      pollfd& entry = entries[i];
      entry.revents =
          static_cast<short>(endpoints[i]->Events() & (entry.events | POLLHUP | POLLERR));
      if (entry.revents != 0) ++found;
    }
    return found;
  };
  World().Wait([look] { return look() > 0; }, DeadlineOf(milliseconds));
  return look();
}

int epoll_create1(int flags) noexcept {
  static const auto real = Real<int(int)>("epoll_create1");
  return Here() == nullptr ? real(flags) : Opened(std::make_shared<DescriptorSet>(), true);
}

int epoll_ctl(int set, int operation, int descriptor, epoll_event* event) noexcept {
  static const auto real = Real<int(int, int, int, epoll_event*)>("epoll_ctl");
  const auto found = As<DescriptorSet>(set);
  return found ? found->Control(operation, descriptor, event)
               : real(set, operation, descriptor, event);
}

int epoll_wait(int set, epoll_event* events, int most, int milliseconds) {
  static const auto real = Real<int(int, epoll_event*, int, int)>("epoll_wait");
  const auto found = As<DescriptorSet>(set);
  if (!found) return real(set, events, most, milliseconds);
  World().Wait([&] { return found->Ready(nullptr, 1) > 0; }, DeadlineOf(milliseconds));
  return found->Ready(events, most);
}

int eventfd(unsigned int count, int flags) noexcept {
  static const auto real = Real<int(unsigned int, int)>("eventfd");
  return Here() == nullptr
             ? real(count, flags)
             : Opened(std::make_shared<EventCounter>(count), (flags & EFD_NONBLOCK) == 0);
}

int eventfd_read(int descriptor, eventfd_t* value) {
  return read(descriptor, value, sizeof *value) == sizeof *value ? 0 : -1;
}

int eventfd_write(int descriptor, eventfd_t value) {
  return write(descriptor, &value, sizeof value) == sizeof value ? 0 : -1;
}

int pipe2(int ends[2], int flags) noexcept {
  static const auto real = Real<int(int*, int)>("pipe2");
  if (Here() == nullptr) return real(ends, flags);
  const auto pipe = std::make_shared<PipeEnd::Pipe>();
  const bool is_blocking = (flags & O_NONBLOCK) == 0;
  ends[0] = Opened(std::make_shared<PipeEnd>(pipe, true), is_blocking);
  ends[1] = Opened(std::make_shared<PipeEnd>(pipe, false), is_blocking);
  return 0;
}

int pipe(int ends[2]) noexcept { return pipe2(ends, 0); }

// The driver of the world starts processes, not this one's parent.

int prctl(int option, ...) noexcept {
  va_list list;
  va_start(list, option);
  unsigned long a[4];
  for (unsigned long& argument : a) argument = va_arg(list, unsigned long);
  va_end(list);
  static const auto real = Real<int(int, ...)>("prctl");
  if (Here() != nullptr && option == PR_SET_PDEATHSIG) return 0;
  return real(option, a[0], a[1], a[2], a[3]);
}

pid_t getppid() noexcept {
  static const auto real = Real<pid_t()>("getppid");
  return Here() == nullptr ? real() : kLauncherPid;
}

}  // extern "C"
