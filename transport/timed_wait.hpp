// How long a thread has waited for other ranks and processes. The rest of its time is its own work.
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe {

/// Counts the lifetime of this object. Objects of one thread may be nested: the outermost counts.
class TimedWait {
 public:
  TimedWait() : begin_(depth++ == 0 ? Clock::now() : Clock::time_point()) {}
  ~TimedWait() {
    if (--depth == 0) total += Clock::now() - begin_;
  }
  TimedWait(const TimedWait&) = delete;
  TimedWait& operator=(const TimedWait&) = delete;

  /// Of this thread, since it began.
  static std::int64_t TotalNs() { return std::chrono::nanoseconds(total).count(); }

 private:
  using Clock = std::chrono::steady_clock;

  static inline thread_local int depth = 0;
  static inline thread_local Clock::duration total{0};

  const Clock::time_point begin_;
};

}  // namespace troupe
