#include "gpu/check.hpp"

#include <cstdio>

namespace troupe::gpu {

std::string ErrorText(const char* call, cudaError_t code) {
  return std::string(call) + ": " + cudaGetErrorName(code) + " (" + cudaGetErrorString(code) + ")";
}

void Check(cudaError_t code, const char* call) {
  if (code != cudaSuccess) throw CudaError(ErrorText(call, code));
}

void Report(cudaError_t code, const char* call) noexcept {
  // At process exit the driver may be unloaded before the last objects are destroyed.
  if (code == cudaSuccess || code == cudaErrorCudartUnloading) return;
  std::fprintf(stderr, "troupe: %s\n", ErrorText(call, code).c_str());
}

}  // namespace troupe::gpu
