// What device code of CUDA finds around itself, for kernels that are compiled for the host: every
// thread of a block runs, one after the other, up to where it waits for others (simt.cpp). Include
// before a .cu file.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector_functions.h>

#include <cuda_runtime_api.h>

/// Of the thread that runs now.
inline thread_local uint3 threadIdx{};
inline thread_local uint3 blockIdx{};
inline thread_local dim3 blockDim;
inline thread_local dim3 gridDim;

// The threads of a block share an OS thread, and blocks follow each other on it.
#undef __shared__
#define __shared__ static thread_local

namespace troupe::simt {

/// Waits for all threads of the block; all must come here, or have ended.
void WaitForBlock();
/// Gives `value`, waits for all threads of the warp and returns what `lane` gave.
std::uint64_t Exchange(std::uint64_t value, int lane);
int Lane();

template <class T>
T ExchangeAs(T value, int lane) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = Exchange(bits, lane);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace troupe::simt

inline void __syncthreads() { troupe::simt::WaitForBlock(); }

template <class T>
T __shfl_down_sync(unsigned /*mask*/, T value, unsigned delta) {
  const int lane = troupe::simt::Lane() + static_cast<int>(delta);
  return troupe::simt::ExchangeAs(value, lane < 32 ? lane : troupe::simt::Lane());
}

template <class T>
T __shfl_xor_sync(unsigned /*mask*/, T value, int with) {
  return troupe::simt::ExchangeAs(value, troupe::simt::Lane() ^ with);
}

inline float __uint_as_float(unsigned bits) {
  float value = 0.0F;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline unsigned __float_as_uint(float value) {
  unsigned bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }
