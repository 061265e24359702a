// One heartbeat connection: frames in and out without waiting, and when the last one came.
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

  /// How the connection ended when it did.
  struct End {
    Loss loss = Loss::kKilled;
    std::string line;
  };

  Pulse(WatchedPeer peer, Time now);

  /// Sends the rest of the last heartbeat, then this one. Skipped while the peer takes nothing: its
  /// silence is judged, not its buffer.
  void Send(Heartbeat::Kind kind, const Vitals& vitals, Time now);
  /// Sends the rest of the last heartbeat, as far as possible.
  void Flush();
  /// Reads all heartbeats that are there, and what TCP knows of the connection.
  void Read(Time now);
  /// As if it had just been heard of.
  void Forgive(Time now) { heard_ = now; }
  /// The silence now, with what TCP knows of the host.
  Silence Measure(Time now) const;
  /// Nothing more is expected of it. With `drain`, first reads what is there, so that closing does
  /// not cut off what we have sent.
  void Close(bool drain);

  int fd() const { return peer_.socket.fd(); }
  bool open() const { return static_cast<bool>(peer_.socket); }
  bool flushed() const { return output_.empty(); }
  /// A goodbye has come.
  bool goodbye() const { return goodbye_; }
  const std::optional<End>& end() const { return end_; }
  ProcessId process() const { return peer_.process; }
  const std::string& name() const { return peer_.name; }
  /// The address of its host, in digits.
  const std::string& host() const { return host_; }
  const Vitals& vitals() const { return vitals_; }
  Time heard() const { return heard_; }
  /// The longest silence that the last Read ended.
  std::chrono::nanoseconds last_silence() const { return last_silence_; }
  std::int64_t clock_offset_ns() const { return clock_.offset_ns(); }

  Presence presence = Presence::kPresent;  ///< as told to the outside

 private:
  void ReadBeats(Time now);
  void Hear(const Heartbeat& beat, Time now);
  void ObserveTcp(Time now);

  WatchedPeer peer_;
  std::string host_;
  TcpProgress tcp_;
  std::vector<std::byte> output_;
  std::array<std::byte, Heartbeat::kBytes> input_{};
  std::size_t num_input_ = 0;
  std::uint64_t next_sent_ = 0;
  std::uint64_t next_received_ = 0;
  Time heard_;
  std::chrono::nanoseconds last_silence_{0};
  Vitals vitals_;
  ClockEstimate clock_;
  std::int64_t echo_ns_ = 0;     ///< sent_ns of the last heartbeat
  std::int64_t echo_at_ns_ = 0;  ///< when it came
  bool goodbye_ = false;
  std::optional<End> end_;
};

}  // namespace troupe
