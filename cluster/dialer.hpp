// The connecting side: tries one address until the other proves the run key, or a deadline.
//
//   refused, unreachable, unknown name    tries again: the other may not listen yet
//   silent for kFirstByteTime             tries again
//   closed before it proved the key       tries again: its places may have been taken
//   not a Troupe process, another key     fails
//   another wire version                  fails
//   TLS on one side only, or refused      fails; broken while it is begun: tries again, twice
//   not the process it should be          fails when joining, else tries again
//
// The handshake's time begins with the other side's first byte: until then it may be busy with
// others, and a connection that is given up loses its turn.
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

struct DialOptions {
  Address address;
  Purpose purpose = Purpose::kJoin;
  ProcessId self = 0;
  ProcessId other = 0;
  std::uint64_t run = 0;
  Deadline not_before{};  ///< of the first attempt
  TlsUse tls = {};
};

/// One thread, no waiting (but for resolving a name): a loop adds its descriptor to a PollSet,
/// waits and calls Serve.
class Dialer {
 public:
  enum class Status { kTrying, kConnected, kFailed };

  Dialer(const RunKey& join_key, DialOptions options);

  void AddTo(PollSet& polls) const;
  /// When Serve has something to do even if nothing is ready.
  Deadline NextDeadline() const;
  Status Serve(const PollSet& polls, Deadline now);

  Status status() const { return status_; }
  const DialOptions& options() const { return options_; }
  /// When failed: a whole sentence. While trying: what stopped the last attempt, "connection
  /// refused"; empty before one has failed.
  const std::string& error() const { return error_; }
  /// While trying: nothing listened there at the last attempt.
  bool refused() const { return refused_; }
  /// When failed: of `error`.
  JoinFault fault() const { return fault_; }
  /// When connected, once.
  Socket TakeSocket() { return std::move(socket_); }
  /// With TLS, the TCP socket below, to be asked. When connected, once.
  Socket TakeWire() { return std::move(wire_); }
  const RunKey& session() const { return handshake_->session(); }

 private:
  void Begin(Deadline now);
  void Retry(const std::string& error, Deadline now);
  void Fail(const std::string& error, JoinFault fault = JoinFault::kOther);
  void TimeOut(Deadline now);
  void Exchange(Deadline now);
  void Conclude(Deadline now);
  void Proven(Deadline now);
  void Secure(Deadline now);
  void TlsFailed(Deadline now);

  RunKey join_key_;
  DialOptions options_;
  Status status_ = Status::kTrying;
  std::string error_;
  bool refused_ = false;
  JoinFault fault_ = JoinFault::kOther;
  std::vector<ResolvedAddress> addresses_;  ///< left of this round
  Socket socket_;                           ///< empty between attempts
  std::optional<Handshake> handshake_;      ///< once connected
  Deadline connected_at_{};                 ///< valid with handshake_
  bool heard_ = false;                      ///< in this attempt, anything at all
  std::vector<std::byte> output_;
  std::optional<TlsHandshake> securing_;  ///< once the key is proven
  Socket wire_;
  int num_tls_lost_ = 0;
  Deadline next_{};  ///< between attempts: of the next; in one: its end
};

}  // namespace troupe
