#include "gpu/check.hpp"

#include <cstdio>

namespace troupe::gpu {

void Check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  throw CudaError(std::string(call) + ": " + cudaGetErrorName(code) + " (" +
                  cudaGetErrorString(code) + ")");
}

void Report(cudaError_t code, const char* call) noexcept {
  // A process that ends takes the driver down before its last objects.
  if (code == cudaSuccess || code == cudaErrorCudartUnloading) return;
  std::fprintf(stderr, "troupe: %s: %s (%s)\n", call, cudaGetErrorName(code),
               cudaGetErrorString(code));
}

}  // namespace troupe::gpu
