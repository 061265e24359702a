// Functions of the C library for simulated threads: threads, locks, clocks, processes, and the calls by
// which a process changes files. Other threads get the real ones.
#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <map>
#include <memory>
#include <openssl/rand.h>
#include <sched.h>
#include <set>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <vector>

#include "tests/simulation/kernel.hpp"
#include "tests/simulation/real_calls.hpp"

using troupe::testing::Kernel;
using troupe::testing::kNever;
using troupe::testing::OutsideOfWorld;
using troupe::testing::SimThread;
using troupe::testing::SimTime;

namespace {

/// The world begins at this time of day: 2026-01-01.
constexpr SimTime kTimeOfDay = 1'767'225'600'000'000'000;

SimThread* Here() { return Kernel::Here(); }
Kernel& World() { return Kernel::Current(); }

/// What a clock shows at the beginning of the world.
SimTime OffsetOf(clockid_t clock) {
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) return kTimeOfDay;
  const SimThread* const here = Here();
  return here->process == nullptr ? 0 : here->process->machine->clock_offset;
}

SimTime NanosecondsOf(const timespec& time) {
  return static_cast<SimTime>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// The time of the world at which a clock shows `time`; null: never.
SimTime DeadlineOf(clockid_t clock, const timespec* time) {
  return time == nullptr ? kNever : NanosecondsOf(*time) - OffsetOf(clock);
}

SimTime After(const timespec* time) {
  return time == nullptr ? kNever : World().now() + NanosecondsOf(*time);
}

/// A thread that waits for a condition or for a word of memory.
struct Sleeper {
  const void* where = nullptr;
  bool is_awake = false;
};

std::vector<Sleeper*>& Sleepers() {
  static std::vector<Sleeper*> sleepers;
  return sleepers;
}

int Wake(const void* where, int most) {
  int woken = 0;
  for (Sleeper* const sleeper : Sleepers()) {
    if (woken == most) break;
    if (sleeper->where != where || sleeper->is_awake) continue;
    sleeper->is_awake = true;
    ++woken;
  }
  return woken;
}

/// Returns false if it has waited until `deadline`.
bool Sleep(const void* where, SimTime deadline) {
  Sleeper sleeper{where, false};
  Sleepers().push_back(&sleeper);
  World().Wait([&] { return sleeper.is_awake; }, deadline);
  std::erase(Sleepers(), &sleeper);
  return sleeper.is_awake;
}

int LockMutex(pthread_mutex_t* mutex, SimTime deadline) {
  TROUPE_REAL(pthread_mutex_trylock);
  for (;;) {
    const int result = real(mutex);
    if (result != EBUSY) return result;
    if (!World().Wait([mutex] { return mutex->__data.__lock == 0; }, deadline)) return ETIMEDOUT;
  }
}

int WaitForCondition(pthread_cond_t* condition, pthread_mutex_t* mutex, SimTime deadline) {
  {
    TROUPE_REAL(pthread_mutex_unlock);
    real(mutex);
  }
  const bool is_awake = Sleep(condition, deadline);
  LockMutex(mutex, kNever);
  return is_awake ? 0 : ETIMEDOUT;
}

/// How often a lock for readers and writers was released.
std::int64_t num_released = 0;

template <class Try>
int LockShared(Try attempt, pthread_rwlock_t* lock) {
  for (;;) {
    const int result = attempt(lock);
    if (result != EBUSY) return result;
    World().Wait([before = num_released] { return num_released != before; });
  }
}

std::set<pthread_once_t*>& Beginning() {
  static std::set<pthread_once_t*> running;
  return running;
}
constexpr pthread_once_t kOnceDone = 2;

/// A thread and what it runs.
struct Started {
  SimThread* thread;
  void* (*run)(void*);
  void* argument;
  int rounds = 0;  ///< of destructors at its end
};

pthread_key_t EndKey();

/// Libraries do work at the end of a thread, such as std::notify_all_at_thread_exit; the thread ends
/// after that, in the last round of its destructors.
void EndThread(void* argument) {
  auto* const started = static_cast<Started*>(argument);
  if (++started->rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(EndKey(), started);
    return;
  }
  SimThread* const thread = started->thread;
  delete started;
  troupe::testing::LeaveMemory();
  World().End(thread);
}

pthread_key_t EndKey() {
  static const pthread_key_t key = [] {
    pthread_key_t made = 0;
    pthread_key_create(&made, EndThread);
    return made;
  }();
  return key;
}

void* RunThread(void* argument) {
  auto* const started = static_cast<Started*>(argument);
  Kernel::Begin(started->thread);
  pthread_setspecific(EndKey(), started);
  return started->run(started->argument);
}

}  // namespace

extern "C" {

// Threads.

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  TROUPE_REAL(pthread_create);
  SimThread* const here = Here();
  if (here == nullptr) return real(thread, attributes, run, argument);
  const OutsideOfWorld outside;
  SimThread* const made = World().NewThread(here->process);
  auto* const started = new Started{made, run, argument, 0};
  made->stack = troupe::testing::TakeStack();
  const int result = troupe::testing::RealPthreadCreate(thread, made->stack, RunThread, started);
  if (result != 0) std::abort();
  made->real = *thread;
  return 0;
}

int pthread_join(pthread_t thread, void** result) {
  TROUPE_REAL(pthread_join);
  if (Here() == nullptr) return real(thread, result);
  SimThread* const joined = World().Find(thread);
  if (joined == nullptr) return real(thread, result);
  World().Wait([joined] { return joined->ended; });
  const int error = real(thread, result);
  const OutsideOfWorld outside;
  troupe::testing::GiveStack(joined->stack);
  joined->real = {};
  return error;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  TROUPE_REAL(pthread_mutex_lock);
  return Here() == nullptr ? real(mutex) : LockMutex(mutex, kNever);
}

int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  TROUPE_REAL(pthread_mutex_clocklock);
  return Here() == nullptr ? real(mutex, clock, until) : LockMutex(mutex, DeadlineOf(clock, until));
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  TROUPE_REAL(pthread_cond_wait);
  return Here() == nullptr ? real(condition, mutex) : WaitForCondition(condition, mutex, kNever);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* until) {
  TROUPE_REAL(pthread_cond_timedwait);
  return Here() == nullptr ? real(condition, mutex, until)
                           : WaitForCondition(condition, mutex, DeadlineOf(CLOCK_REALTIME, until));
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  TROUPE_REAL(pthread_cond_clockwait);
  return Here() == nullptr ? real(condition, mutex, clock, until)
                           : WaitForCondition(condition, mutex, DeadlineOf(clock, until));
}

int pthread_cond_signal(pthread_cond_t* condition) {
  TROUPE_REAL(pthread_cond_signal);
  if (Here() == nullptr) return real(condition);
  Wake(condition, 1);
  World().MayYield();
  return 0;
}

int pthread_cond_broadcast(pthread_cond_t* condition) {
  TROUPE_REAL(pthread_cond_broadcast);
  if (Here() == nullptr) return real(condition);
  Wake(condition, -1);
  World().MayYield();
  return 0;
}

int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  TROUPE_REAL(pthread_rwlock_rdlock);
  static const auto attempt =
      troupe::testing::Real<decltype(pthread_rwlock_tryrdlock)>("pthread_rwlock_tryrdlock");
  return Here() == nullptr ? real(lock) : LockShared(attempt, lock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  TROUPE_REAL(pthread_rwlock_wrlock);
  static const auto attempt =
      troupe::testing::Real<decltype(pthread_rwlock_trywrlock)>("pthread_rwlock_trywrlock");
  return Here() == nullptr ? real(lock) : LockShared(attempt, lock);
}

int pthread_rwlock_unlock(pthread_rwlock_t* lock) {
  TROUPE_REAL(pthread_rwlock_unlock);
  ++num_released;
  return real(lock);
}

int pthread_once(pthread_once_t* once, void (*run)()) {
  TROUPE_REAL(pthread_once);
  if (Here() == nullptr) return real(once, run);
  // It is called often, so it must not give up the thread where nothing is to wait for.
  if (Beginning().contains(once)) World().Wait([once] { return !Beginning().contains(once); });
  if (*once == kOnceDone) return 0;
  Beginning().insert(once);
  try {
    run();
  } catch (...) {
    Beginning().erase(once);
    throw;
  }
  *once = kOnceDone;
  Beginning().erase(once);
  return 0;
}

long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  static const auto real = troupe::testing::Real<long(long, ...)>("syscall");
  if (Here() == nullptr || number != SYS_futex)
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  const auto* const word = reinterpret_cast<const int*>(a[0]);
  const auto* const time = reinterpret_cast<const timespec*>(a[3]);
  const clockid_t clock = (a[1] & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  switch (a[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
      return Wake(word, static_cast<int>(std::min<long>(a[2], 1 << 30)));
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET: {
      if (*word != static_cast<int>(a[2])) {
        errno = EAGAIN;
        return -1;
      }
      const bool is_delay = (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT;
      if (Sleep(word, is_delay ? After(time) : DeadlineOf(clock, time))) return 0;
      errno = ETIMEDOUT;
      return -1;
    }
    default:
      std::abort();
  }
}

int sched_yield() {
  TROUPE_REAL(sched_yield);
  if (Here() == nullptr) return real();
  World().Yield();
  return 0;
}

// Clocks.

int clock_gettime(clockid_t clock, timespec* time) {
  TROUPE_REAL(clock_gettime);
  if (Here() == nullptr) return real(clock, time);
  const SimTime now = World().Look() + OffsetOf(clock);
  *time = {now / 1'000'000'000, now % 1'000'000'000};
  return 0;
}

int gettimeofday(timeval* time, void* zone) {
  TROUPE_REAL(gettimeofday);
  if (Here() == nullptr) return real(time, zone);
  const SimTime now = World().Look() + kTimeOfDay;
  *time = {now / 1'000'000'000, now % 1'000'000'000 / 1000};
  return 0;
}

time_t time(time_t* result) {
  TROUPE_REAL(time);
  if (Here() == nullptr) return real(result);
  const time_t now = (World().Look() + kTimeOfDay) / 1'000'000'000;
  if (result != nullptr) *result = now;
  return now;
}

int nanosleep(const timespec* time, timespec* left) {
  TROUPE_REAL(nanosleep);
  if (Here() == nullptr) return real(time, left);
  World().Wait([] { return false; }, After(time));
  return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  TROUPE_REAL(clock_nanosleep);
  if (Here() == nullptr) return real(clock, flags, time, left);
  World().Wait([] { return false; },
               (flags & TIMER_ABSTIME) != 0 ? DeadlineOf(clock, time) : After(time));
  return 0;
}

// Processes.

pid_t getpid() {
  TROUPE_REAL(getpid);
  const SimThread* const here = Here();
  return here == nullptr || here->process == nullptr ? real() : here->process->pid;
}

[[noreturn]] void _exit(int exit_code) {
  static const auto real = troupe::testing::Real<void(int)>("_exit");
  if (Here() != nullptr) World().Kill(Here()->process, exit_code);
  real(exit_code);
  std::abort();
}

// A number by which nothing can be guessed: here it is drawn from the seed.
int RAND_bytes(unsigned char* bytes, int count) {
  static const auto real = troupe::testing::Real<int(unsigned char*, int)>("RAND_bytes");
  if (Here() == nullptr) return real(bytes, count);
  for (int i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(World().random()());
  return 1;
}

// Files. A process may die before any of these calls, and what it holds is closed.

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = va_arg(list, mode_t);
  va_end(list);
  static const auto real = troupe::testing::Real<int(const char*, int, ...)>("open");
  SimThread* const here = Here();
  if (here != nullptr && (flags & O_ACCMODE) != O_RDONLY) World().BeforeCall("open");
  const int descriptor = real(path, flags, mode);
  if (here != nullptr && descriptor >= 0) here->process->files.push_back(descriptor);
  return descriptor;
}

int fsync(int descriptor) {
  TROUPE_REAL(fsync);
  if (Here() == nullptr) return real(descriptor);
  World().BeforeCall("fsync");
  return 0;  // files survive a loss of power here; tests/world simulates that
}

int rename(const char* from, const char* to) noexcept {
  static const auto real = troupe::testing::Real<int(const char*, const char*)>("rename");
  if (Here() != nullptr) World().BeforeCall("rename");
  return real(from, to);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto real = troupe::testing::Real<int(const char*, mode_t)>("mkdir");
  if (Here() == nullptr) return real(path, mode);
  World().BeforeCall("mkdir");
  if (!World().is_disk_full || access(path, F_OK) == 0) return real(path, mode);
  errno = ENOSPC;
  return -1;
}

int unlink(const char* path) noexcept {
  static const auto real = troupe::testing::Real<int(const char*)>("unlink");
  if (Here() != nullptr) World().BeforeCall("unlink");
  return real(path);
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  static const auto real = troupe::testing::Real<int(int, const char*, int)>("unlinkat");
  if (Here() != nullptr) World().BeforeCall("unlinkat");
  return real(folder, path, flags);
}

int remove(const char* path) noexcept {
  static const auto real = troupe::testing::Real<int(const char*)>("remove");
  if (Here() != nullptr) World().BeforeCall("remove");
  return real(path);
}

int symlink(const char* target, const char* path) noexcept {
  static const auto real = troupe::testing::Real<int(const char*, const char*)>("symlink");
  if (Here() != nullptr) World().BeforeCall("symlink");
  return real(target, path);
}

}  // extern "C"

/// std::random_device: it would read the processor.
unsigned int RandomValue(void* device) asm("_ZNSt13random_device9_M_getvalEv");
unsigned int RandomValue(void* device) {
  static const auto real =
      troupe::testing::Real<unsigned int(void*)>("_ZNSt13random_device9_M_getvalEv");
  return Here() == nullptr ? real(device) : static_cast<unsigned int>(World().random()());
}

// Nothing computes here, and the threads of these libraries would wait by looking at memory.

extern "C" void openblas_set_num_threads(int threads) {
  static const auto real = troupe::testing::Real<void(int)>("openblas_set_num_threads");
  if (Here() == nullptr && real != nullptr) real(threads);
}

void SetComputeThreads(int threads) asm("_ZN2at15set_num_threadsEi");
void SetComputeThreads(int threads) {
  static const auto real = troupe::testing::Real<void(int)>("_ZN2at15set_num_threadsEi");
  if (Here() == nullptr && real != nullptr) real(threads);
}
