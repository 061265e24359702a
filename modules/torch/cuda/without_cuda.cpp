#ifndef TROUPE_TORCH_CUDA
#include <stdexcept>

#include "modules/torch/cuda/torch_cuda.hpp"

namespace troupe {
namespace {

[[noreturn]] void Refuse() {
  throw std::logic_error(
      "this build's libtorch knows no CUDA devices: expected one built for CUDA (TROUPE_TORCH=DIR) "
      "and nvcc when troupe was built");
}

}  // namespace

bool TorchHasCuda() { return false; }
void BindTorchToStream(int /*device*/, void* /*cuda_stream*/) { Refuse(); }
DeviceMemoryUse TorchMemoryUse(int /*device*/) { Refuse(); }
void ResetTorchPeak(int /*device*/) { Refuse(); }
void EmptyTorchCache() { Refuse(); }
std::shared_ptr<void> AllocateTorchMemory(int /*device*/, std::size_t /*bytes*/,
                                          void* /*cuda_stream*/) {
  Refuse();
}
std::shared_ptr<void> AllocateTorchPinned(std::size_t /*bytes*/) { Refuse(); }

}  // namespace troupe
#endif
