// Copies between device memory and pinned host memory for transfers. Each direction of each device
// has a separate stream, so that neither waits for a rank's work.
//
// The source must be complete when it is passed in, as for any Buffer; the copy is complete when
// its callback runs. If copies are checked, device and host content are compared before the
// callback (copy_check.hpp), and a difference is reported as an error.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "transport/buffer.hpp"

namespace troupe {

/// kYes costs, per copy, a kernel, a small copy and a pass over the bytes by this object's thread.
/// kNo costs nothing.
enum class CheckCopies { kNo, kYes };

/// Thread-safe. One per process.
class DeviceStaging {
 public:
  /// Called once per copy, on this object's thread, with CUDA's error text or the result of
  /// CopyCheck::Compare in `error`, or "". May call anything that does not block.
  using Copied = std::function<void(const std::string& error)>;

  explicit DeviceStaging(CheckCopies check = CheckCopies::kNo);
  DeviceStaging(const DeviceStaging&) = delete;
  DeviceStaging& operator=(const DeviceStaging&) = delete;
  /// Waits until every callback has run.
  ~DeviceStaging();

  bool checks_copies() const;

  /// [num_bytes] uint8 of uninitialised pinned memory for copies with `device`. The last handle
  /// returns it for reuse; handles may outlive this object. Throws gpu::CudaError.
  Buffer Pinned(std::size_t num_bytes, int device);

  /// Copies `bytes`, which are on a device or in parts of which some are, into pinned memory.
  /// `begin` is their offset in the range that errors of the check refer to.
  void ToHost(Buffer bytes, std::function<void(Buffer pinned, const std::string& error)> done,
              std::size_t begin = 0);
  /// Copies the pinned buffer to `bytes`, which have the same size.
  void ToDevice(Buffer pinned, Buffer bytes, Copied done, std::size_t begin = 0);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace troupe
