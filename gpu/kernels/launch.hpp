// Launches the kernels on a device's stream. Tests that compile the kernels for the host run them
// as emulated threads (tests/gpu/simt).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include <cuda_runtime_api.h>

#include "gpu/check.hpp"
#include "gpu/stream.hpp"

namespace troupe::gpu {

constexpr int kThreads = 256;  ///< per block
/// Enough blocks to fill a large device several times over; each loops over the remaining work.
constexpr std::int64_t kMaxBlocks = 1 << 14;

constexpr std::int64_t CeilOf(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Blocks of kThreads for one thread per item; at least one.
inline unsigned BlocksFor(std::int64_t items) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(CeilOf(items, kThreads), 1, kMaxBlocks));
}

#ifdef __CUDACC__

template <class... Parameters, class... Arguments>
void Launch(void (*kernel)(Parameters...), dim3 blocks, dim3 threads, StreamView stream,
            Arguments... arguments) {
  kernel<<<blocks, threads, 0, stream.get()>>>(arguments...);
  TROUPE_CUDA(cudaGetLastError());
}

#else

void LaunchOnHost(dim3 blocks, dim3 threads, StreamView stream, std::function<void()> thread);

template <class... Parameters, class... Arguments>
void Launch(void (*kernel)(Parameters...), dim3 blocks, dim3 threads, StreamView stream,
            Arguments... arguments) {
  LaunchOnHost(blocks, threads, stream, [=] { kernel(arguments...); });
}

#endif

}  // namespace troupe::gpu
