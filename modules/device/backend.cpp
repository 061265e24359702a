#include "modules/device/backend.hpp"

#include <stdexcept>

#include "modules/torch/cuda/torch_cuda.hpp"

namespace troupe {

std::string MissingFor(Backend backend) {
  if (backend != Backend::kCuda) return "";
#ifdef TROUPE_HAS_GPU_CODE
  if (TorchHasCuda()) return "";
  return "this build's libtorch computes on the CPU only, expected one with CUDA "
         "(cmake -DTROUPE_TORCH=DIR; docs/gpu.md)";
#else
  return "this build has no GPU code, expected nvcc where it was built (docs/gpu.md)";
#endif
}

#ifndef TROUPE_CUDA_BACKEND  // else they are in cuda_backend.cpp
[[noreturn]] static void RefuseCuda() {
  throw std::runtime_error("cluster.backend = \"cuda\": " + MissingFor(Backend::kCuda));
}

std::vector<GpuFacts> GpusHere() { return {}; }

std::shared_ptr<DeviceBackend> MakeCudaBackend(const Config&, const std::vector<int>&, ProcessId,
                                               std::shared_ptr<AbortSignal>, SayLine) {
  RefuseCuda();
}

std::shared_ptr<DeviceTransport> MakeCudaTransport(const Config&, std::shared_ptr<AbortSignal>) {
  RefuseCuda();
}

std::shared_ptr<MemoryMeter> MakeMemoryMeter(const Config&) {
  return std::make_shared<ResidentMemory>();
}
#endif

}  // namespace troupe
