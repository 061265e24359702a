// One heartbeat connection: sends and receives heartbeats without blocking and measures silences.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/heartbeat.hpp"
#include "cluster/silence.hpp"
#include "cluster/socket.hpp"
#include "cluster/tcp_progress.hpp"

namespace troupe {

class Pulse {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// How the connection ended.
  struct End {
    Loss loss = Loss::kKilled;
    std::string line;
  };

  Pulse(WatchedPeer peer, Time now);

  /// Sends the rest of the last heartbeat, then this one. Skipped while the peer's buffer is full:
  /// the peer is judged by its silence, not by its buffer.
  void Send(Heartbeat::Kind kind, const Vitals& vitals, Time now);
  /// Sends as much as possible of the rest of the last heartbeat.
  void Flush();
  /// Reads all available heartbeats and the connection's TCP state.
  void Read(Time now);
  /// Restarts the measurement of the peer's silence.
  void Forgive(Time now) { last_heartbeat_ = now; }
  /// The current silence and the sign of life from the peer's host.
  Silence Measure(Time now) const;
  /// Closes the connection. With `drain`, first reads all available bytes, so that closing does not
  /// cut off bytes sent to the peer.
  void Close(bool drain);

  int fd() const { return peer_.socket.fd(); }
  bool open() const { return static_cast<bool>(peer_.socket); }
  bool flushed() const { return output_.empty(); }
  /// A goodbye has arrived.
  bool goodbye() const { return goodbye_; }
  const std::optional<End>& end() const { return end_; }
  ProcessId process() const { return peer_.process; }
  const std::string& name() const { return peer_.name; }
  /// The numeric address of its host.
  const std::string& host() const { return host_; }
  const Vitals& vitals() const { return vitals_; }
  Time last_heartbeat() const { return last_heartbeat_; }
  /// The longest silence that the last Read ended.
  std::chrono::nanoseconds last_silence() const { return last_silence_; }
  std::int64_t clock_offset_ns() const { return clock_.offset_ns(); }

  Presence presence = Presence::kPresent;  ///< as last reported to WatchEvents

 private:
  void ReadBeats(Time now);
  void Receive(const Heartbeat& beat, Time now);
  void ObserveTcp(Time now);

  WatchedPeer peer_;
  std::string host_;
  TcpProgress tcp_;
  std::vector<std::byte> output_;
  std::array<std::byte, Heartbeat::kBytes> input_{};
  std::size_t num_input_ = 0;
  std::uint64_t next_sent_ = 0;
  std::uint64_t next_received_ = 0;
  Time last_heartbeat_;
  std::chrono::nanoseconds last_silence_{0};
  Vitals vitals_;
  ClockEstimate clock_;
  std::int64_t echo_ns_ = 0;     ///< sent_ns of the last heartbeat received
  std::int64_t echo_at_ns_ = 0;  ///< when that one arrived
  bool goodbye_ = false;
  std::optional<End> end_;
};

}  // namespace troupe
