// The functions of the C library for which this program has its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "tests/simulation/memory.hpp"

namespace troupe::testing {

/// The next definition of a function after this program's.
template <class Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// Declares `real`, the function of the C library with the name of the function around it.
#define TROUPE_REAL(name) static const auto real = ::troupe::testing::Real<decltype(name)>(#name)

inline long RealSyscall(long number, const void* a, long b, long c) {
  static const auto real = Real<long(long, ...)>("syscall");
  return real(number, a, b, c, nullptr, nullptr, 0);
}
inline void RealFutexWait(std::atomic<int>& word, int value) {
  RealSyscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value);
}
inline void RealFutexWake(std::atomic<int>& word) {
  RealSyscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
}
inline int RealClose(int descriptor) {
  static const auto real = Real<int(int)>("close");
  return real(descriptor);
}
/// With a stack of kStackBytes from the memory of the world.
inline int RealPthreadCreate(pthread_t* thread, void* stack, void* (*run)(void*), void* argument) {
  static const auto real = Real<decltype(pthread_create)>("pthread_create");
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, kStackBytes);
  const int result = real(thread, &attributes, run, argument);
  pthread_attr_destroy(&attributes);
  return result;
}

}  // namespace troupe::testing
