// Checks every call of the CUDA runtime. An error names the call and CUDA's error text.
#pragma once

#include <stdexcept>
#include <string>

#include <cuda_runtime_api.h>

namespace troupe::gpu {

struct CudaError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// "cudaMalloc(&data, bytes): cudaErrorMemoryAllocation (out of memory)".
std::string ErrorText(const char* call, cudaError_t code);

/// Throws CudaError with ErrorText.
void Check(cudaError_t code, const char* call);

/// For destructors: prints the error on standard error and continues.
void Report(cudaError_t code, const char* call) noexcept;

}  // namespace troupe::gpu

#define TROUPE_CUDA(call) ::troupe::gpu::Check((call), #call)
#define TROUPE_CUDA_NO_THROW(call) ::troupe::gpu::Report((call), #call)
