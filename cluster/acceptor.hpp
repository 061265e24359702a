// The listening side of a process while its job meets: strangers are kept small and short, so that
// many of them do not delay a member.
//
//   every connection is accepted at once; what it has already sent is read at once, too
//   each ends after kHandshakeTime in all, however its bytes drip; TLS, which only those that have
//   proven the key get to, takes no place and may take as long again
//   when there are more than the places, in all or of one address, places.hpp decides who goes
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "cluster/handshake.hpp"
#include "cluster/places.hpp"
#include "cluster/poll_set.hpp"
#include "cluster/socket.hpp"
#include "cluster/tls.hpp"

namespace troupe {

/// How long a handshake may take, on either side.
inline constexpr std::chrono::milliseconds kHandshakeTime{2000};

/// A connection whose other side has the run key.
struct Arrival {
  Socket socket;
  Opening other;
  RunKey session;
  /// Not empty: another wire version, TLS on one side only or refused; the connection is of no
  /// further use.
  std::string problem;
  Socket wire = {};  ///< with TLS, the TCP socket below, to be asked
};

/// Counts the connections that could not prove the key: a line for the first, one for all.
class RefusalLog {
 public:
  /// The line to print now, if any.
  std::optional<std::string> Note(const std::string& address);
  /// "refused 300 connections that could not prove the run key, the last from 10.0.0.9"; nothing
  /// where an earlier line has said all of it.
  std::optional<std::string> Total();
  std::uint64_t count() const { return count_; }

 private:
  std::uint64_t count_ = 0;
  std::uint64_t num_said_ = 1;  ///< of count_; the first one is said at once
  std::string last_;            ///< address
};

/// One thread, no waiting: a loop adds its descriptors to a PollSet, waits and calls Serve.
class Acceptor {
 public:
  Acceptor(Socket listener, const RunKey& join_key, ProcessId self,
           std::function<void(const std::string& line)> say, TlsUse tls = {},
           PlaceLimits limits = {});

  /// From now on connections of this run are accepted, too.
  void set_run(std::uint64_t run) { run_ = run; }
  void AddTo(PollSet& polls, Deadline now) const;
  /// When Serve has something to do even if nothing is ready.
  Deadline NextDeadline(Deadline now) const;
  /// Those that have proven the key since the last call.
  std::vector<Arrival> Serve(const PollSet& polls, Deadline now);

  std::uint64_t num_refused() const { return log_.count(); }
  /// Prints how many were refused. At the end of listening.
  void SayTotal();
  Address address() const { return listener_.local_address(); }

 private:
  struct Pending {
    Socket socket;
    Handshake handshake;
    std::vector<std::byte> output;
    std::string from;
    Deadline began;
    bool over = false;
  };

  /// One that has proven the key, on its way to TLS.
  struct Securing {
    TlsHandshake handshake;
    Opening other;
    RunKey session;
    Deadline began;
    bool over = false;
  };

  void Admit(Deadline now, std::vector<Arrival>& arrivals);
  Pending NewPending(Socket socket, Deadline now) const;
  /// Drops those beyond the limits.
  void Evict();
  /// Moves a handshake on; true when it is over.
  bool Advance(Pending& pending, Deadline now, std::vector<Arrival>& arrivals);
  bool Exchange(Pending& pending);
  /// Of a handshake that has ended with the key proven.
  void Proven(Pending& pending, Deadline now, std::vector<Arrival>& arrivals);
  /// As Advance.
  bool Secure(Securing& securing, Deadline now, std::vector<Arrival>& arrivals);
  void Refuse(const Pending& pending);

  Socket listener_;
  RunKey join_key_;
  ProcessId self_;
  std::uint64_t run_ = 0;
  std::function<void(const std::string& line)> say_;
  TlsUse tls_;
  PlaceLimits limits_;
  RefusalLog log_;
  std::list<Pending> pending_;     ///< oldest first
  std::deque<Securing> securing_;  ///< oldest first
  Deadline pause_until_{};         ///< no descriptors left: no new connections before
  bool said_full_ = false;
};

}  // namespace troupe
