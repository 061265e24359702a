// Owns a TCP socket.
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
/// Throws std::invalid_argument naming the expected format.
Address ParseAddress(const std::string& text);

/// An address in the system's format.
struct ResolvedAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};
/// All addresses of `address`, never empty; a numeric host needs no name server. Resolving a name
/// may take as long as the system's resolver waits: there is no deadline. Throws std::runtime_error
/// with the resolver's error text.
std::vector<ResolvedAddress> Resolve(const Address& address);
/// "10.0.0.3"; empty for a family that has no such form.
std::string InDigits(const ResolvedAddress& address);

/// An error of the system. `code` is its errno, ETIMEDOUT for a passed deadline, ENOTCONN for a
/// connection that the other side closed.
struct SocketError : std::runtime_error {
  SocketError(const std::string& text, int number) : std::runtime_error(text), code(number) {}
  int code;
};

/// A socket is non-blocking and closed on exec. All calls throw SocketError with the address, the
/// action and the system's error text; also for a passed deadline.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  /// Listens on exactly this address (port 0: the system's choice), on all interfaces only for
  /// 0.0.0.0 or ::. If a name has several addresses, listens on the first that this machine has.
  static Socket Listen(const Address& address);
  /// The oldest pending connection; an empty Socket if none arrives before the deadline.
  Socket Accept(Deadline deadline);
  /// Tries every address of a name in turn until the deadline: the peer may not be listening yet,
  /// or its name may not be known yet.
  static Socket Connect(const Address& address, Deadline deadline);

  /// Two ends of one connection within this process.
  static std::pair<Socket, Socket> Pair();
  /// Another descriptor of the same connection, for queries while the owner uses the first. The
  /// connection ends with the last descriptor, or with FinishWriting of any.
  Socket Duplicate() const;

  void Write(std::span<const std::byte> bytes, Deadline deadline);
  void Read(std::span<std::byte> bytes, Deadline deadline);

  /// Starts to connect. The socket becomes writable when the attempt has ended.
  static Socket StartConnect(const ResolvedAddress& address);
  /// The result of that attempt: 0 or an errno.
  int ConnectResult() const;
  /// Like Accept, Read and Write, but without waiting: an empty Socket, nothing, or 0 bytes mean
  /// "not now". TryRead returns 0 once the other side has closed.
  Socket TryAccept();
  std::optional<std::size_t> TryRead(std::span<std::byte> bytes);
  std::size_t TryWrite(std::span<const std::byte> bytes);
  /// Writes as much as possible and removes it from `output`; true if nothing is left.
  bool TryDrain(std::vector<std::byte>& output);
  /// Half-closes: the other side reads all written bytes, then the end. Never throws.
  void FinishWriting() noexcept;
  /// True once the other side has closed and all its bytes have been read.
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
