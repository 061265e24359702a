// What a process has to send on one connection, as frames: control frames and small messages before
// the pieces of large ones, but never so many that a large one stands still.
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

/// A message on its way out.
struct OutMessage {
  Label label;
  Buffer buffer;
  std::function<void()> sent;
};

class FrameWriter {
 public:
  /// `key` is this process's.
  FrameWriter(WireKey key, Verify verify) : key_(std::move(key)), verify_(verify) {}

  /// A frame without a payload; its counter and MAC are set when it goes out.
  void Put(const Frame& frame);
  /// In frames of kEarly.
  void PutEarly(OutMessage message);
  /// In pieces, for which the receive must be posted.
  void PutPieces(OutMessage message);
  bool empty() const { return formed_.empty() && small_.empty() && large_.empty(); }

  /// The next bytes, as many as fit `space` and make sense in one call; how many entries it used.
  std::size_t Gather(std::span<iovec> space);
  /// The first `num_bytes` of what Gather gave are out. `done` gets each message that is out as a
  /// whole.
  void Written(std::size_t num_bytes, const std::function<void(OutMessage)>& done);

 private:
  /// A call that writes more leaves no time for others.
  static constexpr std::size_t kGatherBytes = 512 << 10;

  /// A frame with its MAC: header, payload, tail.
  struct Formed {
    Frame head;
    std::span<const std::byte> body;
    WireMac tail{};
    std::size_t tail_bytes = 0;
    OutMessage message = {};  ///< with the last frame of a message
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
  std::size_t passed_ = 0;  // bytes of small ones since the last piece
  std::deque<Formed> formed_;
  std::size_t formed_bytes_ = 0;
  std::size_t written_ = 0;  // of formed_.front()
};

}  // namespace troupe
