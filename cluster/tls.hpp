// TLS for the connections between the processes of a job: encrypted, and only for those that have a
// certificate of the job's authority. TLS 1.3 only, both sides show their certificates, nothing is
// resumed.
//
// Names are not checked: one authority per cluster, whoever has a certificate of it belongs to it.
// That a connection ends at a process of the same job is what the run key proves; the handshake of
// a connection that has been proven so is bound to that proof (TlsHandshake, `session`).
//
// Its users read and write plain bytes: they get one end of a pair of sockets within this process,
// behind which a thread (cluster/tls_relay.hpp) encrypts and decrypts. Closing, half-closing and
// breaking of a connection pass through. What is below, in TCP, has to be asked of `wire`.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cluster/run_key.hpp"
#include "cluster/sealed_frame.hpp"
#include "cluster/socket.hpp"
#include "transport/data_plane.hpp"

namespace troupe {

/// Paths of PEM files.
struct TlsFiles {
  std::string ca;           ///< of the authority that signed all processes' certificates
  std::string certificate;  ///< this process's, before others between it and the authority, if any
  std::string key;          ///< its private key, without a password
};

/// What the secured connections of a process share. It must outlive their use: its end closes them.
/// Thread-safe.
class TlsContext {
 public:
  /// Reads the files, once. Throws std::runtime_error naming the file and what OpenSSL says of it:
  /// missing, no PEM, a key that does not fit the certificate, a certificate that is not signed by
  /// the authority, has expired (since when) or is not valid yet.
  explicit TlsContext(TlsFiles files);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  /// Sends on what has been written, for a second at most, then closes all connections.
  ~TlsContext();

  /// Returns once everything that was written into secured connections before the call is with the
  /// kernel, which sends it even if the process ends; or at the deadline. For whoever calls _exit.
  void Flush(Deadline deadline) const;

  const TlsFiles& files() const { return files_; }

 private:
  friend class TlsHandshake;
  struct State;
  TlsFiles files_;
  std::unique_ptr<State> state_;
};

/// A connection after its handshake.
struct SecuredSocket {
  Socket socket;  ///< to read from and write to
  Socket wire;    ///< the TCP socket below, only to be asked (addresses, TCP_INFO); may be closed
};

/// One handshake, in a loop of others: no waiting, the loop polls for events() and calls Advance.
class TlsHandshake {
 public:
  enum class Status { kRunning, kDone, kFailed };

  /// `plain` is connected, and nothing is on its way on it. `self` is the side that connected or
  /// that accepted. `peer` is the other process's name, for problem(). With `session`, the key of a
  /// proven handshake (cluster/handshake.hpp), it fails unless both have the same: then nobody is
  /// in between. Throws std::runtime_error when OpenSSL or the system has nothing left.
  TlsHandshake(const TlsContext& context, Socket plain, Side self, const std::string& peer,
               const RunKey* session = nullptr);
  ~TlsHandshake();
  TlsHandshake(TlsHandshake&&) noexcept;
  TlsHandshake& operator=(TlsHandshake&&) = delete;

  int fd() const;
  short events() const;
  /// Never throws. Done only once the other side has accepted this one, too.
  Status Advance();
  /// Its time is over: it has failed.
  void GiveUp(std::chrono::milliseconds after);
  /// When failed: "n2 (10.0.0.3): TLS handshake failed: it does not speak TLS".
  const std::string& problem() const;
  /// Failed because the connection broke: another attempt may go better.
  bool lost() const;
  /// When done, once. Throws SocketError when there is no descriptor left.
  SecuredSocket Take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// TLS as the two ends of a new connection need it.
struct TlsUse {
  const TlsContext* context = nullptr;  ///< none: not secured
  std::function<std::string(ProcessId)> name_of = {};
  /// How the process is called: without name_of "process 2".
  std::string NameOf(ProcessId process) const {
    return name_of ? name_of(process) : "process " + std::to_string(process);
  }
};

}  // namespace troupe
