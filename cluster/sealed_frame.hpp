// The frames after a handshake. Each carries its length, its number and an HMAC with the session's
// key. A forged, changed, repeated, missing or reflected frame is detected. Layout: docs/wire.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cluster/bytes.hpp"
#include "cluster/run_key.hpp"

namespace troupe {

inline constexpr std::size_t kLargestPayload = std::size_t{1} << 20;

/// The sender of a frame: only the other side accepts it.
enum class Side : std::uint8_t { kInitiator = 1, kAcceptor = 2 };
inline Side OtherSide(Side side) {
  return side == Side::kInitiator ? Side::kAcceptor : Side::kInitiator;
}

class FrameSealer {
 public:
  FrameSealer(const RunKey& session, Side self) : session_(session), self_(self) {}
  /// Throws WireError when the payload is larger than kLargestPayload.
  std::vector<std::byte> Seal(std::span<const std::byte> payload);

 private:
  RunKey session_;
  Side self_;
  std::uint64_t sequence_ = 0;
};

/// Must not be used again after a WireError.
class FrameOpener {
 public:
  FrameOpener(const RunKey& session, Side other) : session_(session), other_(other) {}
  /// Takes bytes in any pieces. Take all frames with Next() before the next call; the remainder is
  /// then less than one frame.
  void Receive(std::span<const std::byte> bytes);
  /// The payload of the next whole frame. Throws WireError on a length above kLargestPayload (as
  /// soon as the length is read), a wrong number or a wrong HMAC.
  std::optional<std::vector<std::byte>> Next();

 private:
  RunKey session_;
  Side other_;
  std::uint64_t sequence_ = 0;
  std::vector<std::byte> input_;
  std::size_t begin_ = 0;  ///< offset of the next frame in input_
};

}  // namespace troupe
