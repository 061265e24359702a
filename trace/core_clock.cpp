#include "trace/core_clock.hpp"

#include <array>
#include <charconv>
#include <ctime>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace troupe {
namespace {

/// The second number of "ON_CORE WAITED TIMES", in ns. The first lags by up to a tick while
/// the thread runs, so the thread's CPU clock supplies the time on a core.
std::int64_t WaitedIn(std::string_view schedstat) {
  const std::size_t blank = schedstat.find(' ');
  if (blank == std::string_view::npos) return CoreTime::kUnknown;
  schedstat.remove_prefix(blank + 1);
  std::int64_t waited_ns = CoreTime::kUnknown;
  std::from_chars(schedstat.data(), schedstat.data() + schedstat.size(), waited_ns);
  return waited_ns;
}

std::int64_t Difference(std::int64_t after, std::int64_t before) {
  if (after < 0 || before < 0) return CoreTime::kUnknown;
  return after < before ? 0 : after - before;
}

}  // namespace

CoreClock::~CoreClock() {
  if (schedstat_ >= 0) close(schedstat_);
}

void CoreClock::Open() {
  if (open_) return;
  open_ = true;
  schedstat_ = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

CoreTime CoreClock::Read() const {
  CoreTime time;
  if (!open_) return time;
  timespec on_core{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &on_core) == 0) {
    time.on_core_ns = std::int64_t{on_core.tv_sec} * 1'000'000'000 + on_core.tv_nsec;
  }
  if (schedstat_ < 0) return time;
  std::array<char, 96> text{};
  const ssize_t length = pread(schedstat_, text.data(), text.size(), 0);
  if (length > 0) {
    time.without_core_ns = WaitedIn({text.data(), static_cast<std::size_t>(length)});
  }
  return time;
}

CoreTime CoreClock::Since(const CoreTime& before) const {
  const CoreTime now = Read();
  return {Difference(now.on_core_ns, before.on_core_ns),
          Difference(now.without_core_ns, before.without_core_ns)};
}

}  // namespace troupe
