// The single thread of a process that moves the bytes of all its secured connections.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <thread>

#include "cluster/socket.hpp"
#include "cluster/tls_link.hpp"

namespace troupe {

/// Sleeps in poll until bytes arrive, a buffer has room, or a connection ends.
class TlsRelay {
 public:
  TlsRelay();
  TlsRelay(const TlsRelay&) = delete;
  TlsRelay& operator=(const TlsRelay&) = delete;
  /// Closes all connections.
  ~TlsRelay();

  /// Starts to move bytes between the two, until both have ended. Thread-safe.
  void Add(TlsSession session, Socket application);
  /// Blocks until the kernel has all bytes written so far, or until the deadline. Thread-safe.
  void Flush(Deadline deadline);

 private:
  void Run();
  void Round(PollSet& polls);
  /// Takes over the requests of other threads. False at the end.
  bool TakeRequests();

  WakeUp wake_up_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::list<TlsLink> added_;
  std::uint64_t flushes_requested_ = 0;
  std::uint64_t flushes_done_ = 0;
  bool stopping_ = false;
  bool ended_ = false;
  // Used by the thread only.
  std::list<TlsLink> links_;
  std::uint64_t flush_ = 0;  ///< in progress; equals flushed_ if none is
  std::uint64_t flushed_ = 0;

  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace troupe
