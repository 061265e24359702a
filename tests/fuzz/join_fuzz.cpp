// All that is read from a connection while a job meets, and the heartbeats after it.
#include <algorithm>

#include "cluster/handshake.hpp"
#include "cluster/heartbeat.hpp"
#include "cluster/join_message.hpp"
#include "cluster/sealed_frame.hpp"
#include "tests/fuzz/scratch.hpp"

namespace troupe::fuzz {
namespace {

const RunKey& TheKey() {
  static const RunKey key = RunKey::Generate();
  return key;
}

/// Bytes in pieces of `step`, as a socket may return them. A stranger never proves the key.
void Handshakes(std::span<const std::byte> bytes, std::size_t step) {
  for (const bool initiates : {false, true}) {
    Opening self;
    self.nonce.fill(std::byte{7});
    Handshake handshake =
        initiates ? Handshake::Initiate(TheKey(), self) : Handshake::Accept(TheKey(), self);
    auto rest = bytes;
    while (handshake.status() == Handshake::Status::kRunning && !rest.empty()) {
      const std::size_t size = std::min({step, handshake.wanted(), rest.size()});
      handshake.Receive(rest.first(size));
      rest = rest.subspan(size);
    }
    Require(handshake.status() == Handshake::Status::kRunning ||
            handshake.status() == Handshake::Status::kStranger);
  }
}

/// Nothing that was not sealed with the session's key is opened.
void Frames(std::span<const std::byte> bytes, std::size_t step) {
  FrameOpener opener(TheKey(), Side::kInitiator);
  try {
    while (!bytes.empty()) {
      const std::size_t size = std::min(step, bytes.size());
      opener.Receive(bytes.first(size));
      bytes = bytes.subspan(size);
      Require(!opener.Next().has_value());
    }
  } catch (const WireError&) {
  }
}

/// What decodes is what Encode makes.
void Messages(std::span<const std::byte> bytes) {
  try {
    const JoinMessage message = DecodeJoinMessage(bytes);
    Require(std::ranges::equal(Encode(message), bytes));
  } catch (const WireError&) {
  }
}

void Heartbeats(std::span<const std::byte> bytes) {
  if (bytes.size() < Heartbeat::kBytes) return;
  try {
    const auto whole = bytes.first<Heartbeat::kBytes>();
    ByteReader sequence(bytes.subspan(8));
    const Heartbeat beat = DecodeHeartbeat(whole, sequence.U64());
    Require(std::ranges::equal(Encode(beat), whole));
    ClockEstimate().Add(beat, 1);
  } catch (const WireError&) {
  }
}

}  // namespace
}  // namespace troupe::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::fuzz;
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const std::size_t step = std::size_t{1} << (data[0] >> 2 & 15);
  if ((data[0] & 3) == 0) Handshakes(bytes, step);
  if ((data[0] & 3) == 1) Frames(bytes, step);
  if ((data[0] & 3) == 2) Messages(bytes);
  if ((data[0] & 3) == 3) Heartbeats(bytes);
  return 0;
}
