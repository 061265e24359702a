#include "cluster/pulse.hpp"

#include <cerrno>
#include <utility>

#include "cluster/bytes.hpp"

namespace troupe {
namespace {

std::int64_t InNanoseconds(Pulse::Time time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

/// Whether an errno means that the kernel has given up on a host.
bool HostGone(int code) {
  return code == ETIMEDOUT || code == EHOSTUNREACH || code == ENETUNREACH || code == EHOSTDOWN;
}

}  // namespace

Pulse::Pulse(WatchedPeer peer, Time now) : peer_(std::move(peer)), tcp_(now), last_heartbeat_(now) {
  try {
    host_ = (peer_.wire ? peer_.wire : peer_.socket).peer_address().host;
  } catch (const SocketError&) {
    // Already closed: Read() will notice.
  }
}

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
    peer_.socket.TryDrain(output_);
  } catch (const SocketError&) {
    // Read() finds the reason, after any bytes the peer has sent.
    output_.clear();
  }
}

void Pulse::Read(Time now) {
  const Time before = last_heartbeat_;
  ReadBeats(now);
  // Several heartbeats read at once end one silence, which the first of them ended.
  if (last_heartbeat_ != before) last_silence_ = last_heartbeat_ - before;
  ObserveTcp(now);
}

void Pulse::ReadBeats(Time now) {
  try {
    // Bounded, since a peer may flood; the next round reads on.
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
      Receive(DecodeHeartbeat(input_, next_received_++), now);
    }
  } catch (const WireError& error) {
    end_ = End{Loss::kKilled,
               name() + ": it sent something other than a heartbeat (" + error.what() + ")"};
    Close(false);
  } catch (const SocketError& error) {
    end_ = HostGone(error.code) ? End{Loss::kVanished, name() + ": it vanished: " + error.what()}
                                : End{Loss::kKilled, KilledLine(name())};
    Close(false);
  }
}

void Pulse::Receive(const Heartbeat& beat, Time now) {
  last_heartbeat_ = now;
  vitals_ = beat.vitals;
  goodbye_ = beat.kind == Heartbeat::Kind::kGoodbye;
  clock_.Add(beat, InNanoseconds(now));
  echo_ns_ = beat.sent_ns;
  echo_at_ns_ = InNanoseconds(now);
  if (beat.kind == Heartbeat::Kind::kGaveUp) {
    end_ = End{Loss::kKilled, GaveUpLine(name())};
  } else if (beat.kind == Heartbeat::Kind::kGaveUpPath) {
    end_ = End{Loss::kLargePackets, PathGivenUpLine(name())};
  }
  if (end_) Close(false);
}

void Pulse::ObserveTcp(Time now) {
  if (!open()) return;
  // Sockets other than TCP have no state and count as making progress.
  tcp_.Observe(ReadTcpState(peer_.wire ? peer_.wire.fd() : fd()).value_or(TcpState()), now);
}

Silence Pulse::Measure(Time now) const {
  const Time::duration silence = now - last_heartbeat_;
  return {silence, SignOf(tcp_.stuck(now), tcp_.quiet(now), silence), tcp_.stuck(now)};
}

void Pulse::Close(bool drain) {
  if (drain && open()) {
    peer_.socket.FinishWriting();
    peer_.socket.Discard();
  }
  peer_.socket = Socket();
  peer_.wire = Socket();
  output_.clear();
}

}  // namespace troupe
