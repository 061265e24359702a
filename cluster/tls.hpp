// TLS for the connections between the processes of a job: encrypted, and only between holders of a
// certificate of the job's authority. TLS 1.3 only, certificates on both sides, no session
// resumption.
//
// Names are not checked: use one authority per cluster; any certificate of it grants access. The
// run key proves that a connection ends at a process of the same job, and the TLS handshake is
// bound to that proof (TlsHandshake).
//
// Users read and write plain bytes through one end of a socket pair within this process. At the
// other end, a thread (cluster/tls_relay.hpp) encrypts and decrypts. Closing, half-closing and
// breaking of a connection pass through. Query the TCP connection through `wire`.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cluster/handshake.hpp"
#include "cluster/sealed_frame.hpp"
#include "cluster/socket.hpp"
#include "transport/data_plane.hpp"

namespace troupe {

/// Paths of PEM files.
struct TlsFiles {
  std::string ca;  ///< certificate of the authority that signed the processes' certificates
  std::string certificate;  ///< this process's certificate, followed by any intermediate ones
  std::string key;          ///< its private key, without a password
};

/// Shared by the secured connections of a process. Must outlive them: its destructor closes them.
/// Thread-safe.
class TlsContext {
 public:
  /// Reads the files once. Throws std::runtime_error naming the file and OpenSSL's error: missing,
  /// not PEM, a key that does not match the certificate, a certificate that is not signed by the
  /// authority, has expired (since when) or is not valid yet.
  explicit TlsContext(TlsFiles files);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  /// Sends bytes already written, for at most a second, then closes all connections.
  ~TlsContext();

  /// Returns once the kernel has all bytes written into secured connections before the call, or at
  /// the deadline. The kernel sends them even if the process ends: call it before _exit.
  void Flush(Deadline deadline) const;

  const TlsFiles& files() const { return files_; }

 private:
  friend class TlsHandshake;
  struct State;
  TlsFiles files_;
  std::unique_ptr<State> state_;
};

/// One handshake. Never blocks: a loop polls for events() and calls Advance.
class TlsHandshake {
 public:
  enum class Status { kRunning, kDone, kFailed };

  /// `plain` carries no bytes in flight. TLS fails unless both sides have the same `session`, which
  /// excludes a man in the middle. `self` is this side's role. `peer` is the other process's name,
  /// for problem(). Throws std::runtime_error if OpenSSL or the system is out of resources.
  TlsHandshake(const TlsContext& context, ProvenSocket plain, Side self, const std::string& peer,
               std::chrono::milliseconds limit = kHandshakeTime);
  ~TlsHandshake();
  TlsHandshake(TlsHandshake&&) noexcept;
  TlsHandshake& operator=(TlsHandshake&&) = delete;

  int fd() const;
  short events() const;
  /// When the time limit ends.
  Deadline until() const;
  /// Never throws. Done only once the other side has accepted this one, too. Fails when the time is
  /// over.
  Status Advance(Deadline now);
  /// When failed: "n2 (10.0.0.3): TLS handshake failed: it does not speak TLS".
  const std::string& problem() const;
  /// The handshake failed because the connection broke: another attempt may succeed.
  bool lost() const;
  /// When done; call it once. Throws SocketError if the process is out of descriptors.
  ProvenSocket Take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The TLS settings of a new connection's two ends.
struct TlsUse {
  const TlsContext* context = nullptr;  ///< null: not secured
  std::function<std::string(ProcessId)> name_of = {};
  /// The name of a process; without name_of "process 2".
  std::string NameOf(ProcessId process) const {
    return name_of ? name_of(process) : "process " + std::to_string(process);
  }
};

}  // namespace troupe
