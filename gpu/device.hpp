// The devices of this machine, and the current device of a thread.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace troupe::gpu {

/// 0 without a device or driver. Throws CudaError if the driver fails.
int NumDevices();

struct DeviceFacts {
  std::string name;  ///< "NVIDIA H100 80GB HBM3"
  std::size_t memory_bytes = 0;
  int major = 0;  ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
};

/// Throws CudaError for an unknown device.
DeviceFacts FactsOf(int device);

/// Identifies a device, or a MIG partition of one, across processes.
using DeviceId = std::array<char, 16>;
/// Throws CudaError for an unknown device.
DeviceId IdOf(int device);

/// Makes `device` the calling thread's current device while this lives. CUDA keeps the current
/// device per thread, so every handler that uses a device starts with a guard. The destructor
/// restores the previous device, unless this process has never used it: every thread starts on
/// device 0, and selecting a device takes hundreds of MiB of its memory.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard();

 private:
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace troupe::gpu
