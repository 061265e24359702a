// Every call of the CUDA runtime goes through here: a failure says which call, and in CUDA's words.
#pragma once

#include <stdexcept>
#include <string>

#include <cuda_runtime_api.h>

namespace troupe::gpu {

struct CudaError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// "cudaMalloc(&data, bytes): cudaErrorMemoryAllocation (out of memory)".
std::string Words(const char* call, cudaError_t code);

/// Throws CudaError with these words.
void Check(cudaError_t code, const char* call);

/// For destructors: says it on standard error and goes on.
void Report(cudaError_t code, const char* call) noexcept;

}  // namespace troupe::gpu

#define TROUPE_CUDA(call) ::troupe::gpu::Check((call), #call)
#define TROUPE_CUDA_NO_THROW(call) ::troupe::gpu::Report((call), #call)
