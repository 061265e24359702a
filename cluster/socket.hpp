// An owned TCP socket, and the few things done with one before it is handed on.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace troupe {

using Deadline = std::chrono::steady_clock::time_point;

/// HOST:PORT.
struct Address {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const Address&, const Address&) = default;
};
std::string ToString(const Address& address);  ///< "n0:7420", "[::1]:7420"
/// Throws std::invalid_argument saying what is expected.
Address ParseAddress(const std::string& text);

/// What the system connects to.
struct ResolvedAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};
/// All that `address` stands for, never empty; a host in digits needs no name server. Resolving a
/// name can take as long as the system's resolver is willing to wait: no deadline interrupts it.
/// Throws std::runtime_error with the resolver's words.
std::vector<ResolvedAddress> Resolve(const Address& address);

/// What the system refused, and its number for it (errno; ETIMEDOUT for a passed deadline, ENOTCONN
/// for a connection the other side closed).
struct SocketError : std::runtime_error {
  SocketError(const std::string& text, int number) : std::runtime_error(text), code(number) {}
  int code;
};

/// Closes what it owns. Every socket is non-blocking and closed on exec. All calls throw
/// SocketError with the address, what was tried and the system's words; a passed deadline is one,
/// too.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  /// Listens on exactly this address (port 0: the system's choice), on all interfaces only if it is
  /// 0.0.0.0 or ::. Of a name with several addresses, on the first that this machine has.
  static Socket Listen(const Address& address);
  /// The connection that came first; an empty Socket when none came before the deadline.
  Socket Accept(Deadline deadline);
  /// Tries every address of a name in turn, again and again until the deadline: a peer may not
  /// listen yet, its name may not be known yet.
  static Socket Connect(const Address& address, Deadline deadline);

  /// Two ends of one connection within this process.
  static std::pair<Socket, Socket> Pair();
  /// Another descriptor of the same connection: to be asked what it is, while its owner uses it.
  /// The connection ends with the last of them, or with FinishWriting of any.
  Socket Duplicate() const;

  void Write(std::span<const std::byte> bytes, Deadline deadline);
  void Read(std::span<std::byte> bytes, Deadline deadline);

  /// Begins to connect: writable when that has ended one way or the other.
  static Socket StartConnect(const ResolvedAddress& address);
  /// How that has ended: 0 or the errno.
  int ConnectResult() const;
  /// As Accept, Read and Write, but without waiting: an empty Socket, nothing, 0 bytes for "not
  /// now". TryRead returns 0 once the other side has closed.
  Socket TryAccept();
  std::optional<std::size_t> TryRead(std::span<std::byte> bytes);
  std::size_t TryWrite(std::span<const std::byte> bytes);
  /// Writes what goes out now and takes it off `output`; true when nothing is left.
  bool TryDrain(std::vector<std::byte>& output);
  /// The other side reads to the end of what was written, then sees it closed. Never throws.
  void FinishWriting() noexcept;
  /// True once the other side has closed and everything it sent is read.
  bool closed_by_peer() const;

  Address local_address() const;
  Address peer_address() const;
  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace troupe
