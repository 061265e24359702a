// What a process reads from the connections on which tensors come: as a stranger would send it, and
// as a peer that has the key but sends frames that no honest one would.
#include <algorithm>
#include <cstring>

#include "tests/fuzz/scratch.hpp"
#include "transport/tcp/frame_reader.hpp"

namespace troupe::fuzz {
namespace {

constexpr std::size_t kFields = sizeof(Frame) - sizeof(WireMac);

WireKey Key() { return WireKey(WireSecret{}, WireSalt{}, 1); }

/// Takes what the reader lets through, and counts it.
struct Target : FrameTarget {
  std::span<std::byte> BeginFrame(const Frame& frame) override {
    Require(frame.num_bytes <= std::max(kPieceBytes, kEarlyBytes));
    memory.resize(frame.num_bytes);
    return memory;
  }
  void EndFrame(const Frame&) override { ++frames; }
  void SpoiledFrame(const Frame&) override { ++spoiled; }
  std::vector<std::byte> memory;
  int frames = 0;
  int spoiled = 0;
};

/// As a socket fills memory: at most `step` bytes at a time.
void Feed(FrameReader& reader, std::span<const std::byte> bytes, std::size_t step) {
  while (!bytes.empty()) {
    std::size_t filled = 0;
    for (const iovec& space : reader.Space()) {
      const std::size_t size = std::min({space.iov_len, bytes.size(), step - filled});
      if (size > 0) std::memcpy(space.iov_base, bytes.data(), size);
      bytes = bytes.subspan(size);
      filled += size;
    }
    reader.Filled(filled);
  }
}

/// `bytes` as fields of frames and payloads, each frame numbered and signed as it must be.
std::vector<std::byte> Signed(std::span<const std::byte> bytes, Verify verify) {
  WireKey key = Key();
  std::vector<std::byte> result;
  const auto add = [&](std::span<const std::byte> more) {
    result.insert(result.end(), more.begin(), more.end());
  };
  for (std::uint64_t counter = 1; bytes.size() >= kFields; ++counter) {
    Frame frame;
    std::memcpy(&frame, bytes.data(), kFields);
    bytes = bytes.subspan(kFields);
    frame.magic = kFrameMagic;
    frame.counter = counter;
    frame.mac = key.Sign(WirePurpose::kHeader, counter, SignedPart(frame), {});
    add(std::as_bytes(std::span(&frame, 1)));
    const auto payload = bytes.first(std::min<std::size_t>(bytes.size(), frame.num_bytes));
    add(payload);
    bytes = bytes.subspan(payload.size());
    if (verify == Verify::kPayload && !payload.empty())
      add(key.Sign(WirePurpose::kPayload, counter, payload, {}));
  }
  return result;
}

}  // namespace
}  // namespace troupe::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  if (size == 0) return 0;
  const bool has_key = (data[0] & 1) != 0;
  const Verify verify = (data[0] & 2) != 0 ? Verify::kPayload : Verify::kHeader;
  const std::size_t step = std::size_t{1} << (data[0] >> 2 & 15);
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  fuzz::Target target;
  FrameReader reader(fuzz::Key(), verify, target);
  try {
    if (has_key) {
      fuzz::Feed(reader, fuzz::Signed(bytes, verify), step);
    } else {
      fuzz::Feed(reader, bytes, step);
    }
  } catch (const FrameError&) {
  }
  fuzz::Require(target.spoiled == 0);
  fuzz::Require(has_key || target.frames == 0);
  return 0;
}
