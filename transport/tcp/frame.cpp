#include "transport/tcp/frame.hpp"

#include <string>

namespace troupe {
namespace {

bool KindIsKnown(FrameKind kind) { return kind >= FrameKind::kEarly && kind <= FrameKind::kCredit; }

bool SizesFit(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kEarly:
    case FrameKind::kPiece:
      if (frame.kind == FrameKind::kEarly && frame.total > kEarlyBytes) return false;
      return frame.num_bytes <= kPieceBytes && frame.num_bytes <= frame.total &&
             frame.offset <= frame.total - frame.num_bytes;
    default:
      return frame.num_bytes == 0;
  }
}

}  // namespace

void CheckFrame(const Frame& frame, std::uint64_t counter, WireKey& key) {
  const std::string which = "frame " + std::to_string(counter) + " failed its check (header): ";
  // The MAC covers the expected number, so a repeated or reordered frame fails as well.
  if (!key.Verify(frame.mac, WirePurpose::kHeader, counter, SignedPart(frame), {}))
    throw FrameError(which + "its MAC is wrong");
  if (frame.magic != kFrameMagic || frame.counter != counter || !KindIsKnown(frame.kind))
    throw FrameError(which + "it is not a frame of this version");
  if (!SizesFit(frame)) {
    throw FrameError(which + "got " + std::to_string(frame.num_bytes) + " bytes at byte " +
                     std::to_string(frame.offset) + " of " + std::to_string(frame.total) +
                     " in a frame of kind " +
                     std::to_string(static_cast<std::uint32_t>(frame.kind)));
  }
}

}  // namespace troupe
