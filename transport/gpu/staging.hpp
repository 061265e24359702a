// Copies between memory of devices and pinned memory of the host, for bytes that travel: each
// direction of each device on a stream of its own, so that neither waits for a rank's work.
//
// What is copied must be complete when it is given here, as Buffer has it, and is complete when it
// is told. Where copies are checked that goes both ways: what the device has and what the host has
// are compared before the copy is told (copy_check.hpp), and a difference is an error as any other.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "transport/buffer.hpp"

namespace troupe {

/// kYes costs a kernel and a small copy per copy and a pass of this object's thread over its bytes;
/// kNo costs nothing.
enum class CheckCopies { kNo, kYes };

/// Thread-safe. One per process.
class DeviceStaging {
 public:
  /// What happened to a copy; `error` in CUDA's words, or those of CopyCheck::Compare. Called once,
  /// on this object's thread: it may call anything that does not wait.
  using Copied = std::function<void(const std::string& error)>;

  explicit DeviceStaging(CheckCopies check = CheckCopies::kNo);
  DeviceStaging(const DeviceStaging&) = delete;
  DeviceStaging& operator=(const DeviceStaging&) = delete;
  /// Waits until all copies are told.
  ~DeviceStaging();

  bool checks_copies() const;

  /// [num_bytes] uint8 of pinned memory, uninitialised, for copies with `device`; kept for others
  /// when its last handle goes, which may be later than this object. Throws gpu::CudaError.
  Buffer Pinned(std::size_t num_bytes, int device);

  /// Copies `bytes`, on a device and perhaps in parts of which some are elsewhere, into pinned
  /// memory. They are those from `begin` on of what an error of the check speaks of.
  void ToHost(Buffer bytes, std::function<void(Buffer here, const std::string& error)> done,
              std::size_t begin = 0);
  /// Copies `here`, pinned, over `bytes`, as many and as above.
  void ToDevice(Buffer here, Buffer bytes, Copied done, std::size_t begin = 0);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace troupe
