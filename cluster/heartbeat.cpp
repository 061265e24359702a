#include "cluster/heartbeat.hpp"

#include <string>

#include "cluster/bytes.hpp"

namespace troupe {
namespace {

constexpr std::uint32_t kMark = 0x54524842;  // "TRHB"
// The largest assumed drift between two clocks: an old estimate loses this much precision over
// time.
constexpr std::int64_t kDriftPerMillion = 20;

/// `bytes` is a ByteWriter or a ByteReader.
void Numbers(auto& bytes, auto& beat) {
  bytes.Field(beat.sequence);
  bytes.Field(beat.vitals.actions);
  bytes.Field(beat.sent_ns);
  bytes.Field(beat.echo_ns);
  bytes.Field(beat.held_ns);
}

}  // namespace

std::vector<std::byte> Encode(const Heartbeat& beat) {
  ByteWriter writer;
  writer.U32(kMark);
  writer.U8(static_cast<std::uint8_t>(beat.kind));
  writer.U8(beat.vitals.busy ? 1 : 0);
  writer.U8(0);
  writer.U8(0);
  Numbers(writer, beat);
  return writer.Take();
}

Heartbeat DecodeHeartbeat(std::span<const std::byte, Heartbeat::kBytes> bytes,
                          std::uint64_t sequence) {
  ByteReader reader(bytes);
  if (reader.U32() != kMark) throw WireError("not a heartbeat");
  const std::uint8_t kind = reader.U8();
  if (kind < 1 || kind > 4) throw WireError("unknown heartbeat " + std::to_string(kind));
  const std::uint8_t busy = reader.U8();
  if (busy > 1 || reader.U8() != 0 || reader.U8() != 0) throw WireError("unknown heartbeat flag");
  Heartbeat beat;
  beat.kind = static_cast<Heartbeat::Kind>(kind);
  beat.vitals.busy = busy == 1;
  Numbers(reader, beat);
  if (beat.sequence != sequence) {
    throw WireError("expected heartbeat " + std::to_string(sequence) + ", got " +
                    std::to_string(beat.sequence));
  }
  return beat;
}

void ClockEstimate::Add(const Heartbeat& beat, std::int64_t now_ns) {
  // Impossible times would overflow the sums below.
  constexpr std::int64_t kLongest = std::int64_t{1} << 60;
  const auto possible = [](std::int64_t ns) { return ns >= 0 && ns < kLongest; };
  if (beat.echo_ns == 0 || !possible(beat.echo_ns) || !possible(beat.held_ns) ||
      !possible(beat.sent_ns))
    return;
  const std::int64_t round_trip_ns = now_ns - beat.echo_ns - beat.held_ns;
  if (round_trip_ns < 0) return;
  const std::int64_t aged_ns = round_trip_ns_ + (now_ns - taken_ns_) / 1'000'000 * kDriftPerMillion;
  if (taken_ns_ != 0 && round_trip_ns > aged_ns) return;
  // The peer's clock read sent_ns half a round trip ago.
  offset_ns_ = now_ns - round_trip_ns / 2 - beat.sent_ns;
  round_trip_ns_ = round_trip_ns;
  taken_ns_ = now_ns;
}

}  // namespace troupe
