// The listening side of a process while its job meets: strangers are kept small, short and few.
//
//   at most kMostPending handshakes at a time; more wait in the kernel, unaccepted
//   each ends after kHandshakeTime in all, however its bytes drip; TLS, which only those that have
//   proven the key get to, takes no place and may take as long again
//   when all places are taken, the oldest that has had kGrace loses its own: who hammers must not
//   keep members out, and a member needs a few round trips, not kGrace
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cluster/handshake.hpp"
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

/// What is said of those that could not prove the key: the first few one by one, then counts.
class RefusalLog {
 public:
  /// The line to say now, if any.
  std::optional<std::string> Note(const std::string& address, Deadline now);
  std::uint64_t count() const { return count_; }

 private:
  std::uint64_t count_ = 0;
  std::uint64_t num_said_ = 0;  ///< of count_
  Deadline last_said_{};
};

/// One thread, no waiting: a loop adds its descriptors to a PollSet, waits and calls Serve.
class Acceptor {
 public:
  static constexpr std::size_t kMostPending = 16;
  static constexpr std::chrono::milliseconds kGrace{100};

  Acceptor(Socket listener, const RunKey& join_key, ProcessId self,
           std::function<void(const std::string& line)> say, TlsUse tls = {});

  /// From now on connections of this run are accepted, too.
  void set_run(std::uint64_t run) { run_ = run; }
  void AddTo(PollSet& polls, Deadline now) const;
  /// When Serve has something to do even if nothing is ready.
  Deadline NextDeadline(Deadline now) const;
  /// Those that have proven the key since the last call.
  std::vector<Arrival> Serve(const PollSet& polls, Deadline now);

  std::uint64_t num_refused() const { return log_.count(); }
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

  bool has_room(Deadline now) const;
  void Admit(Deadline now);
  /// Moves a handshake on; true when it is over.
  bool Advance(Pending& pending, Deadline now, std::vector<Arrival>& arrivals);
  bool Exchange(Pending& pending);
  /// Of a handshake that has ended with the key proven.
  void Proven(Pending& pending, Deadline now, std::vector<Arrival>& arrivals);
  /// As Advance.
  bool Secure(Securing& securing, Deadline now, std::vector<Arrival>& arrivals);
  void Refuse(const Pending& pending, Deadline now);

  Socket listener_;
  RunKey join_key_;
  ProcessId self_;
  std::uint64_t run_ = 0;
  std::function<void(const std::string& line)> say_;
  TlsUse tls_;
  RefusalLog log_;
  std::deque<Pending> pending_;  ///< oldest first
  std::deque<Securing> securing_;  ///< oldest first
  Deadline pause_until_{};       ///< no descriptors left: no new connections before
};

}  // namespace troupe
