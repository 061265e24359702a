#include "gpu/check.hpp"

#include <cstdio>

namespace troupe::gpu {

std::string Words(const char* call, cudaError_t code) {
  return std::string(call) + ": " + cudaGetErrorName(code) + " (" + cudaGetErrorString(code) + ")";
}

void Check(cudaError_t code, const char* call) {
  if (code != cudaSuccess) throw CudaError(Words(call, code));
}

void Report(cudaError_t code, const char* call) noexcept {
  // A process that ends takes the driver down before its last objects.
  if (code == cudaSuccess || code == cudaErrorCudartUnloading) return;
  std::fprintf(stderr, "troupe: %s\n", Words(call, code).c_str());
}

}  // namespace troupe::gpu
