// A time limit for the members of a group to join. Collectives of the host wait for ever, which
// would hide a missing member at the start of a job.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "transport/gpu/device_member.hpp"

namespace troupe {

/// Raises the member's signal unless destroyed in time: "tensor group of vision: expected all its
/// members within 60 s, no sign of rank 2".
class Patience {
 public:
  /// `member` must outlive this.
  explicit Patience(const DeviceMember& member);
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
  ~Patience();

  /// All members have arrived. From now on `activity` takes the time: "NCCL is still connecting".
  void AllArrived(const std::string& activity);

 private:
  void Watch();

  const DeviceMember& member_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::string activity_;
  std::thread thread_;
};

/// "60 s", "200 ms".
std::string ToString(std::chrono::milliseconds time);

}  // namespace troupe
