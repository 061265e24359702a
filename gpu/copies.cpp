#include "gpu/copies.hpp"

#include "gpu/check.hpp"
#include "gpu/stream.hpp"

namespace troupe::gpu {
namespace {

cudaMemcpyKind KindOf(Way way) {
  switch (way) {
    case Way::kToHost:
      return cudaMemcpyDeviceToHost;
    case Way::kToDevice:
      return cudaMemcpyHostToDevice;
    case Way::kOnDevice:
      break;
  }
  return cudaMemcpyDeviceToDevice;
}

}  // namespace

void Copy(const Stream& stream, void* to, const void* from, std::size_t num_bytes, Way way) {
  if (num_bytes == 0) return;
  TROUPE_CUDA(cudaMemcpyAsync(to, from, num_bytes, KindOf(way), stream.get()));
}

void CopyFromDevice(const Stream& stream, void* to, const void* from, int from_device,
                    std::size_t num_bytes) {
  if (num_bytes == 0) return;
  TROUPE_CUDA(cudaMemcpyPeerAsync(to, stream.device(), from, from_device, num_bytes, stream.get()));
}

}  // namespace troupe::gpu
