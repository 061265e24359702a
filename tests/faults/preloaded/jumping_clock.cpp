// Loaded into `troupe` before the C library: the time of day jumps by a day, forth and back, ten times
// a second. Clocks that measure durations go on.
#include <ctime>
#include <dlfcn.h>
#include <sys/time.h>

namespace {

template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

using GetTime = int(clockid_t, timespec*);

time_t Jump() {
  static auto* const real = Next<GetTime>("clock_gettime");
  timespec now{};
  real(CLOCK_MONOTONIC, &now);
  return now.tv_nsec / 100'000'000 % 2 == 0 ? 0 : -86'400;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static auto* const real = Next<GetTime>("clock_gettime");
  const int result = real(clock, now);
  if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += Jump();
  return result;
}

int gettimeofday(timeval* now, void* zone) noexcept {
  static auto* const real = Next<int(timeval*, void*)>("gettimeofday");
  const int result = real(now, zone);
  if (result == 0) now->tv_sec += Jump();
  return result;
}

time_t time(time_t* now) noexcept {
  static auto* const real = Next<time_t(time_t*)>("time");
  const time_t jumped = real(nullptr) + Jump();
  if (now != nullptr) *now = jumped;
  return jumped;
}

}  // extern "C"
