// One TLS connection on one TCP socket, without blocking: a wrapper of OpenSSL.
#pragma once

#include <cstddef>
#include <memory>
#include <openssl/ssl.h>
#include <span>
#include <string>

#include "cluster/run_key.hpp"
#include "cluster/sealed_frame.hpp"
#include "cluster/socket.hpp"

namespace troupe {

struct TlsFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

/// Owns a handle of OpenSSL.
template <typename T>
using TlsHandle = std::unique_ptr<T, TlsFree>;

/// OpenSSL's last error text on this thread, "key values mismatch"; for files the system's error
/// text. Clears OpenSSL's error queue.
std::string TlsErrorText();

class TlsSession {
 public:
  enum class Status {
    kDone,
    kAgain,   ///< retry once the socket is readable or writable: see wants()
    kEnd,     ///< the other side has ended its direction on purpose
    kBroken,  ///< see problem()
  };
  struct Transfer {
    Status status = Status::kDone;
    std::size_t num_bytes = 0;  ///< above 0 with kDone, else 0
  };

  /// Throws std::runtime_error if OpenSSL is out of memory. `ca` is the file's name, for problem().
  TlsSession(SSL_CTX* context, Socket plain, Side self, std::string ca);
  ~TlsSession();
  TlsSession(TlsSession&&) noexcept;
  TlsSession& operator=(TlsSession&&) = delete;

  Status Handshake();
  Transfer Read(std::span<std::byte> bytes);
  /// After kAgain, call it again with the same bytes; they may be at another address.
  Transfer Write(std::span<const std::byte> bytes);
  /// Ends this direction of TLS; the other one continues.
  Status SendGoodbye();

  /// A secret per `label` that only the two ends of this connection have. After the handshake.
  /// Throws std::runtime_error.
  RunKey::Digest Export(const std::string& label) const;

  /// POLLIN or POLLOUT: the event to wait for after kAgain.
  short wants() const { return wants_; }
  /// The reason of kBroken, as the end of a sentence: "its certificate expired ...".
  const std::string& problem() const { return problem_; }
  /// kBroken because the connection broke, not because of the other side's identity or messages.
  bool lost() const { return lost_; }
  /// Any byte has arrived from the other side.
  bool received() const { return wire_->first_byte >= 0; }
  /// The TCP socket below. After the goodbye its FinishWriting also ends this direction of TCP.
  Socket& socket() { return wire_->socket; }
  const Socket& socket() const { return wire_->socket; }

  /// The socket under OpenSSL and the results of its reads and writes.
  struct Wire {
    Socket socket;
    std::string error;  ///< the system's error text
    bool ended = false;
    int first_byte = -1;  ///< the first byte received: tells TLS from other protocols
  };

 private:
  Status Judge(int result);
  void Diagnose(int error);
  std::string CertificateProblem(long verified) const;

  std::unique_ptr<Wire> wire_;  ///< at a fixed address, since OpenSSL points to it
  TlsHandle<SSL> ssl_;
  std::string ca_;
  std::string problem_;
  short wants_ = 0;
  bool lost_ = false;
};

}  // namespace troupe
