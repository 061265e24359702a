// One process's end of the transfers by which `troupe doctor` measures a connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>

#include "transport/plane.hpp"

namespace troupe {

/// Bytes of a measured transfer, and of the one before that opens the connection.
inline constexpr std::int64_t kMeasuredBytes = 64 << 20;
inline constexpr std::int64_t kOpeningBytes = 64 << 10;
/// Number of transfers, of which the fastest counts: other programs only slow a transfer down.
inline constexpr int kTransferTries = 3;
/// A transfer that takes longer fails.
inline constexpr std::chrono::seconds kTransferTime{60};

/// Used by one thread. The destructor closes the plane.
class TransferEnd {
 public:
  /// Throws std::bad_alloc.
  explicit TransferEnd(std::unique_ptr<Plane> plane);

  Plane& plane() { return *plane_; }

  /// Sends `num_bytes` of a known pattern. Throws std::invalid_argument for more than
  /// kMeasuredBytes.
  void Send(ProcessId to, std::int64_t num_bytes);
  /// Posts a receive for the next message of `from`.
  void Post(ProcessId from, std::int64_t num_bytes);
  /// Waits for the posted receive, at most kTransferTime. Throws std::runtime_error with the reason
  /// if it fails.
  void Await();
  /// Returns whether the last received bytes are the pattern of `from`.
  bool Intact(ProcessId from) const;

 private:
  std::unique_ptr<Plane> plane_;
  ProcessId self_;
  std::map<ProcessId, std::uint64_t> num_sent_;
  std::map<ProcessId, std::uint64_t> num_posted_;
  Buffer outgoing_;
  Buffer incoming_;
  std::future<std::string> arrival_;  ///< the error, or ""
};

}  // namespace troupe
