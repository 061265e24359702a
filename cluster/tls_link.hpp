// One secured connection as the relay serves it: plain bytes on one side, TLS on the other.
//
//   application closes its end       all it wrote is sent, then close_notify and TCP's end; what
//                                    still comes is dropped until the other side ends, too
//   application half-closes          all it wrote is sent, then close_notify; the other direction
//                                    goes on
//   the peer's close_notify          the application reads to the end of what came, then an end;
//                                    with TCP's end after it, its writing fails as well
//   end without it, reset, nonsense  the application reads to the end of what came, then an end;
//                                    its writing fails
#pragma once

#include <cstddef>

#include "cluster/byte_queue.hpp"
#include "cluster/poll_set.hpp"
#include "cluster/socket.hpp"
#include "cluster/tls_session.hpp"

namespace troupe {

/// No waiting. One thread.
class TlsLink {
 public:
  /// Each way. Enough for the actor systems' largest messages in a few rounds.
  static constexpr std::size_t kCapacity = std::size_t{256} << 10;

  TlsLink(TlsSession session, Socket application);

  void AddTo(PollSet& polls) const;
  /// What is ready of its descriptors.
  bool Ready(const PollSet& polls) const;
  /// Moves what can be moved, at most kCapacity each way. Never throws.
  void Serve(const PollSet& polls);
  /// There is more to do without anything becoming ready.
  bool more() const { return more_ && !to_application_.full(); }
  /// All the application had written by the last Serve is with the kernel.
  bool flushed() const { return quiet_ && !blocked(); }
  /// It waits for the peer to take what the application wrote.
  bool blocked() const { return writes_ && !to_wire_.empty(); }
  /// Nothing more to do: to be destroyed.
  bool over() const { return over_; }
  /// The process ends: tells the peer so, as far as that is possible at once.
  void Close() noexcept;

 private:
  void FromWire();
  void ToApplication();
  void FromApplication();
  void ToWire();
  void Conclude();
  /// The wire has ended: tells both sides.
  void End();

  TlsSession session_;
  Socket application_;  ///< empty once it has closed its end
  ByteQueue to_wire_{kCapacity};
  ByteQueue to_application_{kCapacity};
  bool reads_ = true;               ///< from the wire: no close_notify, not broken
  bool writes_ = true;              ///< to the wire: no goodbye said, not broken
  bool broken_ = false;             ///< the wire's both directions
  bool peer_gone_ = false;          ///< TCP's end after close_notify
  bool wants_write_ = false;        ///< the wire's buffer is full
  bool more_ = true;                ///< OpenSSL may hold bytes, for which there was no room
  bool quiet_ = false;              ///< at the last look nothing more came of the application
  bool application_ended_ = false;  ///< it writes no more
  bool application_gone_ = false;   ///< it reads no more
  bool end_told_ = false;           ///< to the application
  bool finished_ = false;           ///< TCP's end is sent
  bool over_ = false;
};

}  // namespace troupe
