// One secured connection, served by the relay: plain bytes on one side, TLS on the other.
//
//   application closes its end       all its bytes are sent, then close_notify and TCP's end;
//                                    further incoming bytes are dropped until the other side ends
//   application half-closes          all its bytes are sent, then close_notify; the other direction
//                                    continues
//   the peer's close_notify          the application reads all received bytes, then an end; if
//                                    TCP's end follows, its writing fails as well
//   end without it, reset, garbage   the application reads all received bytes, then an end; its
//                                    writing fails
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include "cluster/poll_set.hpp"
#include "cluster/socket.hpp"
#include "cluster/tls_session.hpp"

namespace troupe {

/// A bounded queue of bytes. Touches its memory only as far as it has been filled.
class ByteQueue {
 public:
  explicit ByteQueue(std::size_t capacity)
      : bytes_(std::make_unique_for_overwrite<std::byte[]>(capacity)), capacity_(capacity) {}

  bool empty() const { return begin_ == end_; }
  bool full() const { return end_ - begin_ == capacity_; }
  /// The content, oldest first.
  std::span<const std::byte> data() const { return {bytes_.get() + begin_, end_ - begin_}; }
  /// Where to write the next bytes; empty only if the queue is full. Call Added afterwards.
  std::span<std::byte> room() {
    // Moves the content at most once per quarter of the capacity received.
    if (begin_ > 0 && capacity_ - end_ < capacity_ / 4) {
      std::copy(bytes_.get() + begin_, bytes_.get() + end_, bytes_.get());
      end_ -= begin_;
      begin_ = 0;
    }
    return {bytes_.get() + end_, capacity_ - end_};
  }
  void Added(std::size_t num_bytes) { end_ += num_bytes; }
  void Remove(std::size_t num_bytes) {
    begin_ += num_bytes;
    if (begin_ == end_) Clear();
  }
  void Clear() { begin_ = end_ = 0; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

/// Runs on one thread and never blocks.
class TlsLink {
 public:
  /// Per direction. Takes the actor systems' largest messages in a few rounds.
  static constexpr std::size_t kCapacity = std::size_t{256} << 10;

  TlsLink(TlsSession session, Socket application);

  void AddTo(PollSet& polls) const;
  /// Whether one of its descriptors is ready.
  bool Ready(const PollSet& polls) const;
  /// Moves as many bytes as possible, at most kCapacity per direction. Never throws.
  void Serve(const PollSet& polls);
  /// More bytes can be moved without a descriptor becoming ready.
  bool more() const { return more_ && !to_application_.full(); }
  /// The kernel has all bytes that the application had written by the last Serve.
  bool flushed() const { return quiet_ && !blocked(); }
  /// The peer has not taken all bytes that the application wrote.
  bool blocked() const { return writes_ && !to_wire_.empty(); }
  /// The link is finished and can be destroyed.
  bool over() const { return over_; }
  /// The process ends: notifies the peer as far as possible without waiting.
  void Close() noexcept;

 private:
  void FromWire();
  void ToApplication();
  void FromApplication();
  void ToWire();
  void Conclude();

  TlsSession session_;
  Socket application_;  ///< empty once it has closed its end
  ByteQueue to_wire_{kCapacity};
  ByteQueue to_application_{kCapacity};
  bool reads_ = true;               ///< from the wire: no close_notify yet, not broken
  bool writes_ = true;              ///< to the wire: no goodbye sent, not broken
  bool broken_ = false;             ///< the wire, in both directions
  bool peer_gone_ = false;          ///< TCP has ended after close_notify
  bool wants_write_ = false;        ///< the wire's buffer is full
  bool more_ = true;                ///< OpenSSL may hold bytes that did not fit
  bool quiet_ = false;              ///< the last Serve found no more bytes from the application
  bool application_ended_ = false;  ///< it writes no more
  bool application_gone_ = false;   ///< it reads no more
  bool end_sent_ = false;           ///< to the application
  bool finished_ = false;           ///< TCP's end has been sent
  bool over_ = false;
};

}  // namespace troupe
