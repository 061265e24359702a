// Turns the outgoing messages of one connection into frames. Control frames and small messages
// precede the pieces of large ones, but do not starve them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <sys/uio.h>

#include "transport/buffer.hpp"
#include "transport/tcp/frame.hpp"

namespace troupe {

/// An outgoing message.
struct OutMessage {
  Label label;
  Buffer buffer;
  std::function<void()> sent;
};

class FrameWriter {
 public:
  /// `key` is this process's.
  FrameWriter(WireKey key, Verify verify) : key_(std::move(key)), verify_(verify) {}

  /// Queues a frame without a payload. Its counter and MAC are set when it is sent.
  void Put(const Frame& frame);
  /// Queues a message in frames of kEarly.
  void PutEarly(OutMessage message);
  /// Queues a message in pieces; its receive must be posted.
  void PutPieces(OutMessage message);
  bool empty() const { return formed_.empty() && small_.empty() && large_.empty(); }

  /// Fills `space` with the next bytes, up to a sensible size for one call. Returns the number of
  /// entries used.
  std::size_t Gather(std::span<iovec> space);
  /// The first `num_bytes` of Gather's bytes have been sent. Calls `done` for each message that is
  /// completely sent.
  void Written(std::size_t num_bytes, const std::function<void(OutMessage)>& done);

 private:
  /// Enough for one system call; more would delay other connections.
  static constexpr std::size_t kGatherBytes = 512 << 10;

  /// A frame ready to send: header, payload, tail with the payload's MAC.
  struct Formed {
    Frame head;
    std::span<const std::byte> body;
    WireMac tail{};
    std::size_t tail_bytes = 0;
    OutMessage message = {};  ///< set in the last frame of a message
    bool last = false;
    std::size_t size() const { return sizeof head + body.size() + tail_bytes; }
  };
  struct Small {
    Frame frame;
    OutMessage message;
  };
  struct Large {
    FrameKind kind;
    OutMessage message;
    std::size_t at = 0;
  };

  void PutMessage(FrameKind kind, OutMessage message);
  bool Form();
  void FormSmall();
  void FormPiece();
  void Finish(Formed formed);

  WireKey key_;
  const Verify verify_;
  std::uint64_t counter_ = 0;
  std::deque<Small> small_;
  std::deque<Large> large_;
  std::size_t passed_ = 0;  // bytes of small frames since the last piece
  std::deque<Formed> formed_;
  std::size_t formed_bytes_ = 0;
  std::size_t written_ = 0;  // bytes of formed_.front()
};

}  // namespace troupe
