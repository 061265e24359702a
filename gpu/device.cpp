#include "gpu/device.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>

#include "gpu/check.hpp"

namespace troupe::gpu {

int NumDevices() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver) {
    static_cast<void>(cudaGetLastError());  // not an error for later calls to find
    return 0;
  }
  Check(code, "cudaGetDeviceCount");
  return count;
}

DeviceFacts FactsOf(int device) {
  cudaDeviceProp properties{};
  TROUPE_CUDA(cudaGetDeviceProperties(&properties, device));
  return {properties.name, properties.totalGlobalMem, properties.major, properties.minor,
          properties.multiProcessorCount};
}

DeviceId IdOf(int device) {
  cudaDeviceProp properties{};
  TROUPE_CUDA(cudaGetDeviceProperties(&properties, device));
  DeviceId id{};
  static_assert(sizeof id == sizeof properties.uuid.bytes);
  std::copy(std::begin(properties.uuid.bytes), std::end(properties.uuid.bytes), id.begin());
  return id;
}

/// One bit per device that has had a guard.
static std::atomic<std::uint64_t> used_devices = 0;

static std::uint64_t BitOf(int device) { return std::uint64_t{1} << (device & 63); }

DeviceGuard::DeviceGuard(int device) {
  TROUPE_CUDA(cudaGetDevice(&before_));
  // Always set: before CUDA 12, a device is initialised only on first use.
  TROUPE_CUDA(cudaSetDevice(device));
  changed_ = device != before_;
  used_devices.fetch_or(BitOf(device), std::memory_order_relaxed);
}

DeviceGuard::~DeviceGuard() {
  const bool used = (used_devices.load(std::memory_order_relaxed) & BitOf(before_)) != 0;
  if (changed_ && used) TROUPE_CUDA_NO_THROW(cudaSetDevice(before_));
}

}  // namespace troupe::gpu
