// One TLS connection on one TCP socket, without waiting: what OpenSSL does, in this folder's words.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "cluster/run_key.hpp"
#include "cluster/sealed_frame.hpp"
#include "cluster/socket.hpp"
#include "cluster/tls_handles.hpp"

namespace troupe {

/// How OpenSSL reads and writes a Socket: without SIGPIPE, and with the system's words.
TlsHandle<BIO_METHOD> MakeSocketMethod();

class TlsSession {
 public:
  enum class Status {
    kDone,
    kAgain,   ///< once the socket can be read, or written: see wants()
    kEnd,     ///< the other side has ended its direction, on purpose
    kBroken,  ///< see problem()
  };
  struct Transfer {
    Status status = Status::kDone;
    std::size_t num_bytes = 0;  ///< with kDone more than none, else none
  };

  /// Throws std::runtime_error when OpenSSL has no memory. `ca` is the file's name, for problem().
  TlsSession(SSL_CTX* context, const BIO_METHOD* method, Socket plain, Side self, std::string ca);
  ~TlsSession();
  TlsSession(TlsSession&&) noexcept;
  TlsSession& operator=(TlsSession&&) = delete;

  Status Handshake();
  Transfer Read(std::span<std::byte> bytes);
  /// `bytes` may lie elsewhere when it is called again, but must begin with the same.
  Transfer Write(std::span<const std::byte> bytes);
  /// Ends this direction of TLS; the other one goes on.
  Status SayGoodbye();
  /// Ends this direction of TCP as well, after the goodbye: this side is gone.
  void FinishWriting() noexcept;
  /// Takes what has come and forgets it, so that closing does not cut off what was sent.
  void Drain() noexcept;

  /// A secret of this connection that only its two ends have, one for each `label`. After the
  /// handshake. Throws std::runtime_error.
  RunKey::Digest Export(const std::string& label) const;

  /// POLLIN or POLLOUT: what the last kAgain waits for.
  short wants() const { return wants_; }
  /// Why it is broken, as the end of a sentence: "its certificate expired ...".
  const std::string& problem() const { return problem_; }
  /// Broken because the connection is, not because of what the other side is or says.
  bool lost() const { return lost_; }
  /// Anything has come from the other side.
  bool heard() const;
  const Socket& socket() const;

  /// What OpenSSL's reads and writes go to, and what came of them.
  struct Wire {
    Socket socket;
    std::string error;  ///< the system's words
    bool ended = false;
    int first_byte = -1;  ///< that came: it tells whether this is TLS at all
  };

 private:
  Status Judge(int result);
  void Diagnose(int error);
  std::string CertificateProblem(long verified) const;

  std::unique_ptr<Wire> wire_;  ///< stays where it is: OpenSSL points to it
  TlsHandle<SSL> ssl_;
  std::string ca_;
  std::string problem_;
  short wants_ = 0;
  bool lost_ = false;
};

}  // namespace troupe
