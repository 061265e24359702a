// Turns the bytes of a connection into frames, without waiting and without a socket: it says where
// the next bytes belong, and payloads are read straight to where they are wanted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/uio.h>
#include <vector>

#include "transport/tcp/frame.hpp"

namespace troupe {

/// Gets the frames of a connection, in order. Both calls may throw FrameError.
class FrameTarget {
 public:
  virtual ~FrameTarget() = default;
  /// A checked frame. The memory for its payload, frame.num_bytes of it, which stays valid until
  /// EndFrame.
  virtual std::span<std::byte> BeginFrame(const Frame& frame) = 0;
  /// Its payload is there, and right as far as `verify` goes.
  virtual void EndFrame(const Frame& frame) = 0;
  /// Its payload is there, and not what the sender signed.
  virtual void SpoiledFrame(const Frame& frame) = 0;
};

class FrameReader {
 public:
  /// `key` is the sender's. With Verify::kPayload a MAC follows each payload.
  FrameReader(WireKey key, Verify verify, FrameTarget& target);

  /// Where the next bytes belong, in this order; never both empty.
  std::array<iovec, 2> Space();
  /// `num_bytes` have been put there. Throws FrameError; then the reader is of no further use.
  void Filled(std::size_t num_bytes);

 private:
  /// Holds several small messages, and costs little to copy out of where a large one begins.
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
  std::size_t filled_ = 0;        // of payload_
  std::vector<std::byte> staging_;
  std::size_t begin_ = 0;  // of what is in staging_ and not parsed
  std::size_t end_ = 0;
};

}  // namespace troupe
