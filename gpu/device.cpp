#include "gpu/device.hpp"

#include <algorithm>
#include <iterator>

#include "gpu/check.hpp"

namespace troupe::gpu {

int NumDevices() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver) {
    static_cast<void>(cudaGetLastError());  // it is not one: nobody else shall find it
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

DeviceGuard::DeviceGuard(int device) {
  TROUPE_CUDA(cudaGetDevice(&before_));
  if (device != before_) TROUPE_CUDA(cudaSetDevice(device));
}

DeviceGuard::~DeviceGuard() { TROUPE_CUDA_NO_THROW(cudaSetDevice(before_)); }

}  // namespace troupe::gpu
