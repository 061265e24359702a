// Copies between memory of devices and pinned memory of the host, for bytes that travel: each
// direction of each device on a stream of its own, so that neither waits for a rank's work.
//
// What is copied must be complete when it is given here, as Buffer has it, and is complete when it
// is told.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "transport/buffer.hpp"

namespace troupe {

/// Thread-safe. One per process.
class DeviceStaging {
 public:
  /// What happened to a copy; `error` in CUDA's words. Called once, on this object's thread: it may
  /// call anything that does not wait.
  using Copied = std::function<void(const std::string& error)>;

  DeviceStaging();
  DeviceStaging(const DeviceStaging&) = delete;
  DeviceStaging& operator=(const DeviceStaging&) = delete;
  /// Waits until all copies are told.
  ~DeviceStaging();

  /// [num_bytes] uint8 of pinned memory, uninitialised, for copies with `device`; kept for others
  /// when its last handle goes, which may be later than this object. Throws gpu::CudaError.
  Buffer Pinned(std::size_t num_bytes, int device);

  /// Copies `bytes`, on a device and perhaps in parts, into pinned memory.
  void ToHost(Buffer bytes, std::function<void(Buffer here, const std::string& error)> done);
  /// Copies `here`, pinned, over `bytes` of a device, which are as many.
  void ToDevice(Buffer here, Buffer bytes, Copied done);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace troupe
