#include "cluster/socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include "cluster/text.hpp"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

[[noreturn]] void Fail(const std::string& tried, int error) {
  throw SocketError(tried + ": " + SystemWords(error), error);
}

/// `get` is getsockname or getpeername.
std::optional<Address> AddressOf(int fd, decltype(&getsockname) get) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  if (get(fd, address, &length) != 0) return std::nullopt;
  return FromSystem(*address);
}

std::string PeerOf(int fd) {
  const auto peer = PeerAddressOf(fd);
  return peer && peer->host != "local" ? ToString(*peer) : "the other side";
}

void SetOption(int fd, int level, int option, int value, const char* name) {
  if (setsockopt(fd, level, option, &value, sizeof value) != 0)
    Fail(std::string("cannot set ") + name, errno);
}

/// Waits for one of `events` or an error. False if the deadline passes first.
bool WaitFor(int fd, short events, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
    pollfd entry{fd, events, 0};
    const int n = poll(&entry, 1, static_cast<int>(std::clamp<long long>(left, 0, INT_MAX)));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) Fail("cannot wait for " + PeerOf(fd), errno);
    if (n == 0 && left <= 0) return false;
  }
}

Socket NewSocket(int family) {
  Socket result(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!result) Fail("cannot make a socket", errno);
  return result;
}

}  // namespace

std::optional<Address> LocalAddressOf(int fd) { return AddressOf(fd, getsockname); }

std::optional<Address> PeerAddressOf(int fd) { return AddressOf(fd, getpeername); }

Socket Socket::Listen(const Address& address) {
  const std::string tried = "cannot listen on " + ToString(address);
  int error = EADDRNOTAVAIL;
  std::vector<ResolvedAddress> addresses;
  try {
    addresses = Resolve(address);
  } catch (const std::runtime_error& failure) {
    throw SocketError(tried + ": " + failure.what(), EADDRNOTAVAIL);
  }
  for (const ResolvedAddress& resolved : addresses) {
    Socket listener = NewSocket(resolved.storage.ss_family);
    SetOption(listener.fd(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
    if (resolved.storage.ss_family == AF_INET6) {
      SetOption(listener.fd(), IPPROTO_IPV6, IPV6_V6ONLY, address.host == "::" ? 0 : 1,
                "IPV6_V6ONLY");
    }
    if (bind(listener.fd(), reinterpret_cast<const sockaddr*>(&resolved.storage),
             resolved.length) == 0 &&
        listen(listener.fd(), SOMAXCONN) == 0)
      return listener;
    error = errno;
    // A port in use is an error even if the name has another address.
    if (error == EADDRINUSE) break;
  }
  Fail(tried, error);
}

std::pair<Socket, Socket> Socket::Pair() {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    Fail("cannot make a pair of sockets", errno);
  return {Socket(ends[0]), Socket(ends[1])};
}

Socket Socket::Duplicate() const {
  Socket result(fcntl(fd(), F_DUPFD_CLOEXEC, 0));
  if (!result) Fail("cannot duplicate a socket", errno);
  return result;
}

void Socket::Write(std::span<const std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const std::size_t n = TryWrite(bytes);
    bytes = bytes.subspan(n);
    if (n == 0 && !WaitFor(fd(), POLLOUT, deadline))
      Fail("cannot write " + std::to_string(bytes.size()) + " bytes to " + PeerOf(fd()), ETIMEDOUT);
  }
}

void Socket::Read(std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const auto n = TryRead(bytes);
    if (n == 0) {
      throw SocketError("cannot read " + std::to_string(bytes.size()) + " bytes from " +
                            PeerOf(fd()) + ": it closed the connection",
                        ENOTCONN);
    }
    bytes = bytes.subspan(n.value_or(0));
    if (!n && !WaitFor(fd(), POLLIN, deadline)) {
      Fail("cannot read " + std::to_string(bytes.size()) + " bytes from " + PeerOf(fd()),
           ETIMEDOUT);
    }
  }
}

Socket Socket::StartConnect(const ResolvedAddress& address) {
  Socket result = NewSocket(address.storage.ss_family);
  SetOption(result.fd(), IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
  if (connect(result.fd(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) !=
          0 &&
      errno != EINPROGRESS && errno != EINTR) {
    Fail("cannot connect to " +
             ToString(FromSystem(reinterpret_cast<const sockaddr&>(address.storage))),
         errno);
  }
  return result;
}

int Socket::ConnectResult() const {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  if (error != 0) return error;
  try {
    // The system may choose the target port as the local port: the socket then connects to itself.
    return local_address() == peer_address() ? ECONNREFUSED : 0;
  } catch (const SocketError& failure) {
    return failure.code;
  }
}

Socket Socket::TryAccept() {
  Socket accepted(accept4(fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!accepted) {
    // Linux reports errors of the pending connection here: that connection is gone.
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNABORTED ||
        errno == EPROTO || errno == ENETDOWN || errno == EHOSTUNREACH || errno == ENETUNREACH)
      return {};
    Fail("cannot accept on " + ToString(local_address()), errno);
  }
  SetOption(accepted.fd(), IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
  return accepted;
}

std::optional<std::size_t> Socket::TryRead(std::span<std::byte> bytes) {
  for (;;) {
    const ssize_t n = recv(fd(), bytes.data(), bytes.size(), 0);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::nullopt;
    if (errno != EINTR) Fail("cannot read from " + PeerOf(fd()), errno);
  }
}

std::size_t Socket::TryWrite(std::span<const std::byte> bytes) {
  for (;;) {
    const ssize_t n = send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) Fail("cannot write to " + PeerOf(fd()), errno);
  }
}

bool Socket::TryDrain(std::vector<std::byte>& output) {
  while (!output.empty()) {
    const std::size_t n = TryWrite(output);
    if (n == 0) return false;
    output.erase(output.begin(), output.begin() + static_cast<std::ptrdiff_t>(n));
  }
  return true;
}

void Socket::FinishWriting() noexcept {
  if (fd_) shutdown(fd(), SHUT_WR);
}

void Socket::Discard() noexcept {
  std::array<std::byte, 16384> ignored;
  try {
    // Bounded, since the other side may never stop sending.
    for (int round = 0; round < 64; ++round)
      if (TryRead(ignored).value_or(0) == 0) return;
  } catch (const SocketError&) {
    // No bytes are left to cut off.
  }
}

bool Socket::closed_by_peer() const {
  char byte = 0;
  const ssize_t n = recv(fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

Address Socket::local_address() const {
  if (auto address = LocalAddressOf(fd())) return *address;
  Fail("cannot get a socket's own address", errno);
}

Address Socket::peer_address() const {
  if (auto address = PeerAddressOf(fd())) return *address;
  Fail("cannot get the address of the other side", errno);
}

}  // namespace troupe
