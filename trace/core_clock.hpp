// Reads how long the calling thread has been on a core, and how long it has waited for one.
#pragma once

#include "trace/core_time.hpp"

namespace troupe {

/// Of the thread on which Open was called; used on that thread only.
class CoreClock {
 public:
  CoreClock() = default;
  CoreClock(const CoreClock&) = delete;
  CoreClock& operator=(const CoreClock&) = delete;
  ~CoreClock();

  /// A clock that is not open knows nothing. Where the kernel does not count waits for a core
  /// (/proc/thread-self/schedstat is not there), only the time on a core is known.
  void Open();
  bool is_open() const { return open_; }

  /// Since the thread began; two system calls, 1.4 us.
  CoreTime Read() const;
  /// Since `before`, which is an earlier Read.
  CoreTime Since(const CoreTime& before) const;

 private:
  bool open_ = false;
  int schedstat_ = -1;
};

}  // namespace troupe
