// The CUDA backend itself: built where nvcc is. modules/device/backend.hpp is what others include.
#pragma once

#include "modules/device/backend.hpp"

namespace troupe {

std::vector<GpuFacts> CudaGpus();

std::shared_ptr<DeviceBackend> MakeCuda(const Config& config, const std::vector<int>& ranks,
                                        ProcessId self, std::shared_ptr<AbortSignal> abort,
                                        SayLine say);
std::shared_ptr<DeviceTransport> MakeStagedTransport(const Config& config,
                                                     std::shared_ptr<AbortSignal> abort);
std::shared_ptr<MemoryMeter> MakeTorchMemory(const Config& config);

}  // namespace troupe
