// Parses the bytes of a connection into frames, without a socket and without blocking. It provides
// the memory for the next bytes, so that payloads are read directly to their destinations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/uio.h>
#include <vector>

#include "transport/tcp/frame.hpp"

namespace troupe {

/// Receives the frames of a connection, in order. The calls may throw FrameError.
class FrameTarget {
 public:
  virtual ~FrameTarget() = default;
  /// Called with a checked frame. Returns the memory for its payload of frame.num_bytes, which
  /// stays valid until EndFrame.
  virtual std::span<std::byte> BeginFrame(const Frame& frame) = 0;
  /// The payload has arrived and passed the check of `verify`.
  virtual void EndFrame(const Frame& frame) = 0;
  /// The payload has arrived and differs from the one the sender signed.
  virtual void SpoiledFrame(const Frame& frame) = 0;
};

class FrameReader {
 public:
  /// `key` is the sender's. With Verify::kPayload a MAC follows each payload.
  FrameReader(WireKey key, Verify verify, FrameTarget& target);

  /// The memory for the next bytes, in this order; never both empty.
  std::array<iovec, 2> Space();
  /// `num_bytes` have been read into Space(). After a FrameError the reader is unusable.
  void Filled(std::size_t num_bytes);

 private:
  /// Holds several small messages; small enough to copy the beginning of a large one cheaply.
  static constexpr std::size_t kStagingBytes = 16 << 10;

  void Parse();
  bool ParseHeader();
  bool ParsePayload();
  bool ParseTail();
  std::span<const std::byte> staged() const;

  WireKey key_;
  const Verify verify_;
  FrameTarget& target_;
  std::uint64_t counter_ = 0;
  enum class State : std::uint8_t { kHeader, kPayload, kTail } state_ = State::kHeader;
  Frame frame_;
  std::span<std::byte> payload_;  // of frame_
  std::size_t filled_ = 0;        // bytes of payload_
  std::vector<std::byte> staging_;
  std::size_t begin_ = 0;  // start of the unparsed bytes in staging_
  std::size_t end_ = 0;
};

}  // namespace troupe
