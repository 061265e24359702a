// modules/torch/cuda/ where libtorch knows no GPUs.
#ifndef TROUPE_TORCH_CUDA
#include <stdexcept>

#include "modules/torch/copy_lane.hpp"
#include "modules/torch/cuda/kernels.hpp"
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

std::unique_ptr<CopyLane> MakeDeviceCopyLane(int /*device*/) { Refuse(); }

using at::Tensor;
void ApplyAdamWOnDevice(const AdamWStep&, const FlatRun&) { Refuse(); }
bool HasDeviceNorm(const Tensor&, const Tensor&) { return false; }
void RmsNormOnDevice(const Tensor&, const Tensor&, double, const Tensor&, const Tensor&) {
  Refuse();
}
void RmsNormGradientOnDevice(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                             const Tensor&, const Tensor&) {
  Refuse();
}
bool HasDeviceSwiGlu(const Tensor&) { return false; }
void SwiGluOnDevice(const Tensor&, const Tensor&) { Refuse(); }
void SwiGluGradientOnDevice(const Tensor&, const Tensor&, const Tensor&) { Refuse(); }
bool HasDeviceTurn(const Tensor&, const Tensor&, const Tensor&) { return false; }
void TurnHeadsOnDevice(const Tensor&, const Tensor&, const Tensor&, double, const Tensor&) {
  Refuse();
}
void CopyByKernel(const Tensor&, const Tensor&) { Refuse(); }
void GatherRowsOnDevice(const Tensor&, const Tensor&, const Tensor&) { Refuse(); }
void ScatterRowsOnDevice(const Tensor&, const Tensor&, const Tensor&) { Refuse(); }
void TakeRowsOnDevice(const Tensor&, const Tensor&, const Tensor&) { Refuse(); }

}  // namespace troupe
#endif
