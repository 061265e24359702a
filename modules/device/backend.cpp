#include "modules/device/backend.hpp"

#include <stdexcept>

#include "modules/torch/cuda/torch_cuda.hpp"
#ifdef TROUPE_CUDA_BACKEND
#include "modules/device/cuda_backend.hpp"
#endif

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

std::vector<GpuFacts> GpusHere() {
#ifdef TROUPE_CUDA_BACKEND
  return CudaGpus();
#else
  return {};
#endif
}

std::shared_ptr<DeviceBackend> MakeCudaBackend(const Config& config, const std::vector<int>& ranks,
                                               ProcessId self, std::shared_ptr<AbortSignal> abort,
                                               SayLine say) {
  const std::string missing = MissingFor(Backend::kCuda);
  if (!missing.empty()) throw std::runtime_error("cluster.backend = \"cuda\": " + missing);
#ifdef TROUPE_CUDA_BACKEND
  return MakeCuda(config, ranks, self, std::move(abort), std::move(say));
#else
  static_cast<void>(config), static_cast<void>(ranks), static_cast<void>(self),
      static_cast<void>(abort), static_cast<void>(say);
  return nullptr;
#endif
}

std::shared_ptr<DeviceTransport> MakeCudaTransport(const Config& config,
                                                   std::shared_ptr<AbortSignal> abort) {
  const std::string missing = MissingFor(Backend::kCuda);
  if (!missing.empty()) throw std::runtime_error("cluster.backend = \"cuda\": " + missing);
#ifdef TROUPE_CUDA_BACKEND
  return MakeStagedTransport(config, std::move(abort));
#else
  static_cast<void>(config), static_cast<void>(abort);
  return nullptr;
#endif
}

std::shared_ptr<MemoryMeter> MakeMemoryMeter(const Config& config) {
#ifdef TROUPE_CUDA_BACKEND
  if (config.cluster.backend == Backend::kCuda) return MakeTorchMemory(config);
#endif
  static_cast<void>(config);
  return std::make_shared<ResidentMemory>();
}

}  // namespace troupe
