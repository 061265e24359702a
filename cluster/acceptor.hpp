// The listening side of a process while its job meets. Unauthenticated connections are cheap and
// short-lived, so that many of them do not delay a member.
//
//   every connection is accepted at once, and the bytes it has already sent are read at once
//   a handshake must finish within kHandshakeTime, however slowly its bytes arrive
//   TLS starts after the run key is proven: it occupies no place and has another kHandshakeTime
//   when the places run out, in total or for one address, places.hpp chooses the ones to drop
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/handshake.hpp"
#include "cluster/places.hpp"
#include "cluster/poll_set.hpp"
#include "cluster/socket.hpp"
#include "cluster/tls.hpp"

namespace troupe {

/// A process that has proven the run key.
struct Arrival {
  Opening other;
  std::optional<ProvenSocket> connection;
  /// Without a connection: another wire version, or TLS is on at one end only or has failed.
  std::string problem = {};
};

/// Counts connections that could not prove the run key. Reports the first one and the total.
class RefusalLog {
 public:
  /// `key`: its name in the lines.
  explicit RefusalLog(std::string key = "the run key") : key_(std::move(key)) {}
  /// Counts one connection. Returns the line to print now, if any.
  std::optional<std::string> Note(const std::string& address);
  /// "refused 300 connections that could not prove the run key, the last from 10.0.0.9". Nothing if
  /// all of them have been reported before.
  std::optional<std::string> Total();
  std::uint64_t count() const { return count_; }

 private:
  std::string key_;
  std::uint64_t count_ = 0;
  std::uint64_t num_reported_ = 1;  ///< of count_; Note reports the first
  std::string last_;                ///< address
};

/// Runs on one thread and never blocks: a loop adds its descriptors to a PollSet, waits and calls
/// Serve.
class Acceptor {
 public:
  Acceptor(Socket listener, const RunKey& join_key, ProcessId self,
           std::function<void(const std::string& line)> print, TlsUse tls = {},
           PlaceLimits limits = {}, const std::string& key_name = "the run key");

  /// From now on also accepts connections of this run.
  void set_run(std::uint64_t run) { run_ = run; }
  void AddTo(PollSet& polls, Deadline now) const;
  /// The next time at which Serve has work even if no descriptor is ready.
  Deadline NextDeadline(Deadline now) const;
  /// Returns the connections that have proven the key since the last call.
  std::vector<Arrival> Serve(const PollSet& polls, Deadline now);

  std::uint64_t num_refused() const { return log_.count(); }
  /// Prints the number of refused connections. Call it when listening ends.
  void ReportTotal();
  Address address() const { return listener_.local_address(); }

 private:
  struct Pending {
    Socket socket;
    Handshake handshake;
    std::string from;
    Deadline began;
    bool over = false;
  };

  /// A connection that has proven the key and is in its TLS handshake.
  struct Securing {
    TlsHandshake handshake;
    Opening other;
    bool over = false;
  };

  void Admit(Deadline now, std::vector<Arrival>& arrivals);
  Pending NewPending(Socket socket, Deadline now) const;
  /// Drops connections beyond the limits.
  void Evict();
  /// Advances a handshake. True when it is over.
  bool Advance(Pending& pending, Deadline now, std::vector<Arrival>& arrivals);
  /// Handles a handshake that has ended with the key proven.
  void Proven(Pending& pending, Deadline now, std::vector<Arrival>& arrivals);
  /// Like Advance.
  bool Secure(Securing& securing, Deadline now, std::vector<Arrival>& arrivals) const;
  void Refuse(const Pending& pending);

  Socket listener_;
  RunKey join_key_;
  ProcessId self_;
  std::uint64_t run_ = 0;
  std::function<void(const std::string& line)> print_;
  TlsUse tls_;
  PlaceLimits limits_;
  RefusalLog log_;
  std::list<Pending> pending_;    ///< oldest first
  std::list<Securing> securing_;  ///< oldest first
  Deadline pause_until_{};        ///< out of descriptors: accept nothing before
  bool reported_full_ = false;
};

}  // namespace troupe
