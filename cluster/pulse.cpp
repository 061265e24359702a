#include "cluster/pulse.hpp"

#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <utility>

#include "cluster/bytes.hpp"

namespace troupe {
namespace {

std::int64_t InNanoseconds(Pulse::Time time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

/// What the kernel says when it has given up on a host by itself.
bool HostGone(int code) {
  return code == ETIMEDOUT || code == EHOSTUNREACH || code == ENETUNREACH || code == EHOSTDOWN;
}

}  // namespace

Pulse::Pulse(WatchedPeer peer, Time now) : peer_(std::move(peer)), heard_(now) {}

void Pulse::Send(Heartbeat::Kind kind, const Vitals& vitals, Time now) {
  if (!open()) return;
  Flush();
  if (!open() || !output_.empty()) return;
  const std::int64_t now_ns = InNanoseconds(now);
  Heartbeat beat;
  beat.kind = kind;
  beat.sequence = next_sent_++;
  beat.vitals = vitals;
  beat.sent_ns = now_ns;
  beat.echo_ns = echo_ns_;
  beat.held_ns = echo_ns_ == 0 ? 0 : now_ns - echo_at_ns_;
  output_ = Encode(beat);
  Flush();
}

void Pulse::Flush() {
  try {
    while (!output_.empty()) {
      const std::size_t n = peer_.socket.TryWrite(output_);
      if (n == 0) return;
      output_.erase(output_.begin(), output_.begin() + static_cast<std::ptrdiff_t>(n));
    }
  } catch (const SocketError&) {
    // Reading finds out why, after what the peer may still have said.
    output_.clear();
  }
}

void Pulse::Read(Time now) {
  try {
    // Not for ever: a peer that floods is heard again in the next round.
    for (int round = 0; open() && !goodbye_ && round < 64; ++round) {
      const auto n = peer_.socket.TryRead(std::span(input_).subspan(num_input_));
      if (!n) return;
      if (*n == 0) {
        end_ = End{Loss::kKilled, KilledLine(name())};
        return Close(false);
      }
      num_input_ += *n;
      if (num_input_ < input_.size()) continue;
      num_input_ = 0;
      Hear(DecodeHeartbeat(input_, next_received_++), now);
    }
  } catch (const WireError& error) {
    end_ = End{Loss::kKilled, name() + " sent what is no heartbeat (" + error.what() + ")"};
    Close(false);
  } catch (const SocketError& error) {
    end_ = HostGone(error.code) ? End{Loss::kVanished, name() + " vanished: " + error.what()}
                                : End{Loss::kKilled, KilledLine(name())};
    Close(false);
  }
}

void Pulse::Hear(const Heartbeat& beat, Time now) {
  last_silence_ = now - heard_;
  heard_ = now;
  vitals_ = beat.vitals;
  goodbye_ = beat.kind == Heartbeat::Kind::kGoodbye;
  clock_.Add(beat, InNanoseconds(now));
  echo_ns_ = beat.sent_ns;
  echo_at_ns_ = InNanoseconds(now);
  if (beat.kind != Heartbeat::Kind::kGaveUp) return;
  end_ = End{Loss::kKilled, GaveUpLine(name())};
  Close(false);
}

Silence Pulse::Measure(Time now) const {
  Silence silence{now - heard_, true};
  tcp_info info{};
  socklen_t length = sizeof info;
  const int wire = peer_.wire ? peer_.wire.fd() : fd();
  if (open() && getsockopt(wire, IPPROTO_TCP, TCP_INFO, &info, &length) == 0)
    silence.host_answers = HostAnswers(
        info.tcpi_unacked > 0, std::chrono::milliseconds(info.tcpi_last_ack_recv), silence.length);
  return silence;
}

void Pulse::Close(bool drain) {
  if (drain && open()) {
    peer_.socket.FinishWriting();
    std::array<std::byte, 4096> ignored;
    try {
      while (peer_.socket.TryRead(ignored).value_or(0) > 0) continue;
    } catch (const SocketError&) {
      // It is being closed anyway.
    }
  }
  peer_.socket = Socket();
  peer_.wire = Socket();
  output_.clear();
}

}  // namespace troupe
