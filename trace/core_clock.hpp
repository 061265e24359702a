// Measures how long the calling thread has run on a core, and how long it has waited for one.
#pragma once

#include "trace/work_usage.hpp"

namespace troupe {

/// Measures the thread that called Open; used on that thread only.
class CoreClock {
 public:
  CoreClock() = default;
  CoreClock(const CoreClock&) = delete;
  CoreClock& operator=(const CoreClock&) = delete;
  ~CoreClock();

  /// A clock that is not open reads unknown times. Without /proc/thread-self/schedstat only the
  /// time on a core is known.
  void Open();
  bool is_open() const { return open_; }

  /// Times since the thread began; two system calls, 1.4 us.
  CoreTime Read() const;
  /// Times since `before`, an earlier Read.
  CoreTime Since(const CoreTime& before) const;

 private:
  bool open_ = false;
  int schedstat_ = -1;
};

}  // namespace troupe
