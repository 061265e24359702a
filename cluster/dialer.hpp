// The connecting side: tries one address until the other side proves the run key, or until a
// deadline.
//
//   refused, unreachable, unknown name    tries again: the other may not listen yet
//   silent for kFirstByteTime             tries again
//   closed before it proved the key       tries again: it may have been evicted
//   not a Troupe process, another key     fails
//   another wire version                  fails
//   TLS on one side only, or refused      fails
//   connection broken during TLS          tries again, twice
//   not the expected process              fails when joining, else tries again
//
// The handshake's time limit starts with the other side's first byte. Until then the other side may
// be busy with other connections, and giving up would lose this one's turn.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/handshake.hpp"
#include "cluster/join_problem.hpp"
#include "cluster/poll_set.hpp"
#include "cluster/socket.hpp"
#include "cluster/tls.hpp"

namespace troupe {

/// After this time an attempt ends at a host that does not answer at all; the kernel alone would try for
/// two minutes.
inline constexpr std::chrono::milliseconds kConnectTime{5000};

struct DialOptions {
  Address address;
  Purpose purpose = Purpose::kJoin;
  ProcessId self = 0;
  ProcessId other = 0;
  std::uint64_t run = 0;
  Deadline not_before{};  ///< the earliest time of the first attempt
  TlsUse tls = {};
};

/// Runs on one thread and never blocks, except to resolve a name: a loop adds its descriptor to a
/// PollSet, waits and calls Serve.
class Dialer {
 public:
  enum class Status { kTrying, kConnected, kFailed };

  Dialer(const RunKey& join_key, DialOptions options);

  void AddTo(PollSet& polls) const;
  /// The next time at which Serve has work even if no descriptor is ready.
  Deadline NextDeadline() const;
  Status Serve(const PollSet& polls, Deadline now);

  Status status() const { return status_; }
  const DialOptions& options() const { return options_; }
  /// When failed: a whole sentence. While trying: the error of the last attempt, "connection
  /// refused"; empty before the first one has failed.
  const std::string& error() const { return error_; }
  /// While trying: the last attempt was refused because nothing listened there.
  bool refused() const { return refused_; }
  /// When failed: the kind of `error`.
  JoinFault fault() const { return fault_; }
  /// When connected; call it once.
  ProvenSocket Take() { return {std::move(socket_), handshake_->session(), std::move(wire_)}; }

 private:
  void Begin(Deadline now);
  void Retry(const std::string& error, Deadline now);
  void Fail(const std::string& error, JoinFault fault = JoinFault::kOther);
  void TimeOut(Deadline now);
  void Exchange(Deadline now);
  void Conclude(Deadline now);
  void Proven(Deadline now);
  void Secure(Deadline now);

  RunKey join_key_;
  DialOptions options_;
  Status status_ = Status::kTrying;
  std::string error_;
  bool refused_ = false;
  JoinFault fault_ = JoinFault::kOther;
  std::vector<ResolvedAddress> addresses_;  ///< of this round, not tried yet
  Socket socket_;                           ///< empty between attempts
  std::optional<Handshake> handshake_;      ///< once connected
  Deadline connected_at_{};                 ///< valid with handshake_
  std::optional<TlsHandshake> securing_;    ///< while in the TLS handshake
  Socket wire_;
  int num_tls_lost_ = 0;
  Deadline next_{};  ///< between attempts: start of the next; during one: its deadline
};

}  // namespace troupe
