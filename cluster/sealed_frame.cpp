#include "cluster/sealed_frame.hpp"

#include <algorithm>
#include <string>

namespace troupe {
namespace {

constexpr std::size_t kHeader = 4 + 8;
constexpr std::size_t kMac = std::tuple_size_v<RunKey::Digest>;

RunKey::Digest MacOf(const RunKey& session, Side sender, std::span<const std::byte> frame) {
  ByteWriter writer;
  writer.U8(static_cast<std::uint8_t>(sender));
  writer.Raw(frame);
  return session.Authenticate(writer.Take());
}

}  // namespace

std::vector<std::byte> FrameSealer::Seal(std::span<const std::byte> payload) {
  if (payload.size() > kLargestPayload) {
    throw WireError("expected at most " + std::to_string(kLargestPayload) +
                    " bytes in a frame, got " + std::to_string(payload.size()));
  }
  ByteWriter writer;
  writer.U32(static_cast<std::uint32_t>(payload.size()));
  writer.U64(sequence_++);
  writer.Raw(payload);
  std::vector<std::byte> frame = writer.Take();
  const RunKey::Digest mac = MacOf(session_, self_, frame);
  frame.insert(frame.end(), mac.begin(), mac.end());
  return frame;
}

void FrameOpener::Receive(std::span<const std::byte> bytes) {
  input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(begin_));
  begin_ = 0;
  input_.insert(input_.end(), bytes.begin(), bytes.end());
}

std::optional<std::vector<std::byte>> FrameOpener::Next() {
  const auto rest = std::span<const std::byte>(input_).subspan(begin_);
  if (rest.size() < kHeader) return std::nullopt;
  ByteReader header(rest);
  const std::size_t size = header.U32();
  const std::uint64_t sequence = header.U64();
  if (size > kLargestPayload) {
    throw WireError("expected a frame of at most " + std::to_string(kLargestPayload) +
                    " bytes, got one of " + std::to_string(size));
  }
  if (sequence != sequence_) {
    throw WireError("expected frame " + std::to_string(sequence_) + ", got " +
                    std::to_string(sequence));
  }
  if (rest.size() < kHeader + size + kMac) return std::nullopt;
  RunKey::Digest claimed{};
  const auto mac = rest.subspan(kHeader + size, kMac);
  std::copy(mac.begin(), mac.end(), claimed.begin());
  if (!EqualDigests(claimed, MacOf(session_, other_, rest.first(kHeader + size))))
    throw WireError("frame " + std::to_string(sequence) + " has been changed on its way");
  ++sequence_;
  begin_ += kHeader + size + kMac;
  const auto payload = rest.subspan(kHeader, size);
  return std::vector<std::byte>(payload.begin(), payload.end());
}

}  // namespace troupe
