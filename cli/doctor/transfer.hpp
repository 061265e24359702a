// One process's end of the tensors that `troupe doctor` sends to measure a connection.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/plane.hpp"

namespace troupe {

/// Bytes measured, and those that open a connection before.
inline constexpr std::int64_t kMeasuredBytes = 64 << 20;
inline constexpr std::int64_t kOpeningBytes = 64 << 10;
/// Of them: what else the processors do in one of them makes that one slower, never faster.
inline constexpr int kTransferTries = 3;
/// A transfer that takes longer is given up.
inline constexpr std::chrono::seconds kTransferTime{60};

/// One thread, the owner's. Closes its plane when it goes.
class TransferEnd {
 public:
  /// Throws std::bad_alloc.
  explicit TransferEnd(std::unique_ptr<Plane> plane);

  std::vector<std::byte> address() const { return plane_->address(); }
  /// Throws as Plane does.
  void Connect(std::vector<std::vector<std::byte>> addresses) {
    plane_->Connect(std::move(addresses));
  }
  const Plane& plane() const { return *plane_; }

  /// Sends `num_bytes` known ones. Throws std::invalid_argument for more than kMeasuredBytes.
  void Send(ProcessId to, std::int64_t num_bytes);
  /// From now on the next message of `from` is received.
  void Post(ProcessId from, std::int64_t num_bytes);
  /// Waits for what was posted, kTransferTime at most. Throws std::runtime_error with the reason
  /// when it does not come.
  void Await();
  /// Whether what came last is what `from` sends.
  bool Intact(ProcessId from) const;

  /// Others are about to close, too.
  void Leave() { plane_->Leave(); }

 private:
  std::unique_ptr<Plane> plane_;
  ProcessId self_;
  std::map<ProcessId, std::uint64_t> num_sent_;
  std::map<ProcessId, std::uint64_t> num_posted_;
  Buffer outgoing_;
  Buffer incoming_;
  std::future<std::string> arrival_;  ///< the error, or nothing
};

}  // namespace troupe
