// The one thread of a process that moves the bytes of all its secured connections.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <thread>

#include "cluster/socket.hpp"
#include "cluster/tls_link.hpp"
#include "cluster/wake_up.hpp"

namespace troupe {

/// Wakes by poll only: when a byte, a place for one or the end of a connection is there.
class TlsRelay {
 public:
  TlsRelay();
  TlsRelay(const TlsRelay&) = delete;
  TlsRelay& operator=(const TlsRelay&) = delete;
  /// Closes all connections.
  ~TlsRelay();

  /// From now on moves bytes between the two, until both have ended. Thread-safe.
  void Add(TlsSession session, Socket application);
  /// Until what was written so far is with the kernel, or the deadline. Thread-safe.
  void Flush(Deadline deadline);

 private:
  void Run();
  void Round(PollSet& polls);
  /// Takes in what other threads ask for; false at the end.
  bool Orders();

  WakeUp wake_up_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::list<TlsLink> added_;
  std::uint64_t flushes_asked_ = 0;
  std::uint64_t flushes_done_ = 0;
  bool stopping_ = false;
  bool ended_ = false;
  // Of the thread only.
  std::list<TlsLink> links_;
  std::uint64_t flush_ = 0;  ///< being done; flushed_ when none is
  std::uint64_t flushed_ = 0;

  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace troupe
