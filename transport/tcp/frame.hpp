// The wire format of a proven connection: frames of 72 bytes, little-endian, no padding, the MAC
// last, some followed by a payload. The connection keeps the order of frames, so their numbers are
// consecutive. Layout and flow: docs/wire.md.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "transport/data_plane.hpp"
#include "transport/wire_key.hpp"

namespace troupe {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

inline constexpr std::uint32_t kFrameMagic = 0x31465054;  ///< "TPF1"

/// A message up to this size travels in one frame, before the pieces of larger ones.
inline constexpr std::uint64_t kSmallBytes = 64 << 10;
/// A message up to this size may be sent before its receive is posted.
inline constexpr std::uint64_t kEarlyBytes = 2 << 20;
/// The limit of a peer's early messages that are not received yet; further messages wait at the
/// sender for their receives.
inline constexpr std::uint64_t kEarlyBudget = 8 << 20;
/// Added to the size of an early message, for its entries in tables.
inline constexpr std::uint64_t kEarlyCost = 256;
/// The largest payload of a frame. A larger message travels in pieces, with other frames in
/// between.
inline constexpr std::uint64_t kPieceBytes = 256 << 10;
/// The limit of a peer's open announcements and requests of each kind.
inline constexpr std::size_t kMostOpen = std::size_t{1} << 20;

enum class FrameKind : std::uint32_t {
  kEarly = 1,     ///< like kPiece, whether or not the receive is posted
  kAnnounce = 2,  ///< message `label` of `total` bytes waits for its receive
  kReady = 3,     ///< the receive of message `label` is posted, for `total` bytes
  kPiece = 4,     ///< bytes [offset, offset + num_bytes) of a message whose receive is posted
  kPull = 5,      ///< send bytes [offset, offset + total) of allocation `key` as pull `number`
  kRefused = 6,   ///< pull `number` is refused
  kReturn = 7,    ///< returns weight `number` of allocation `key`
  kCredit = 8     ///< early messages of cost `total`, in all, have been received
};

struct Frame {
  std::uint32_t magic = kFrameMagic;
  FrameKind kind = FrameKind::kEarly;
  std::uint64_t counter = 0;    ///< number of the frame, counted by the sender from 1
  std::uint64_t stream = 0;     ///< of the label; `key` of a pull and a return
  std::uint64_t sequence = 0;   ///< of the label; `number` of a pull and a return
  std::uint64_t offset = 0;     ///< in the message or the allocation
  std::uint64_t total = 0;      ///< size of the message
  std::uint64_t num_bytes = 0;  ///< of the payload after this frame
  WireMac mac{};                ///< of the fields above
};
static_assert(sizeof(Frame) == 72 && std::is_trivially_copyable_v<Frame> &&
              std::has_unique_object_representations_v<Frame>);

/// A peer that has the key has sent an illegal frame: the connection is unusable. The text follows
/// the peer's name: "frame 7 ...".
struct FrameError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws FrameError unless `frame` is legal as a peer's `counter`th frame, regardless of earlier
/// frames. Checks the MAC first and reads nothing else of a frame with a wrong MAC.
void CheckFrame(const Frame& frame, std::uint64_t counter, WireKey& key);

inline Label LabelOf(const Frame& frame) { return {frame.stream, frame.sequence}; }
inline std::uint64_t CostOf(std::uint64_t num_bytes) { return num_bytes + kEarlyCost; }

}  // namespace troupe
