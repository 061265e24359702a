// The devices of this machine, and which of them a thread talks to.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace troupe::gpu {

/// 0 where there is none, or no driver. Throws CudaError for a driver that is there and fails.
int NumDevices();

struct DeviceFacts {
  std::string name;  ///< "NVIDIA H100 80GB HBM3"
  std::size_t memory_bytes = 0;
  int major = 0;  ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
};

/// Throws CudaError for a device that is not there.
DeviceFacts FactsOf(int device);

/// Names a device beyond this process and its numbers: no two have the same, nor do the parts that
/// one is cut into.
using DeviceId = std::array<char, 16>;
/// Throws CudaError for a device that is not there.
DeviceId IdOf(int device);

/// The calling thread talks to `device` while this lives. CUDA keeps that per thread, so every
/// handler that touches a device begins with one. What the thread talked to before it talks to
/// again, unless no guard of this process was ever on that: a thread begins on device 0, and to set
/// a device takes hundreds of MiB of its memory.
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
