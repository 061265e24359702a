// Collectives that run on a separate thread while their member goes on.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "transport/communicator.hpp"

namespace troupe {

/// When an operation ran.
struct OperationTimes {
  Operation operation = Operation::kBarrier;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// One member's views of some groups, whose operations are started and waited for. They run in the
/// order in which this member started them, one at a time, on a thread of this object. The order must
/// be the same on all members of a group. Its functions are called on the member's thread only.
class StartedOperations {
 public:
  /// Of the operations of this member, from 1.
  using Number = std::uint64_t;

  /// Nanoseconds; called on any thread.
  using Clock = std::int64_t (*)();

  /// Takes the member's only views of the groups. `clock` gives the times of operations.
  explicit StartedOperations(std::vector<std::unique_ptr<Communicator>> groups,
                             Clock clock = nullptr);
  /// Returns when all that was started has run, or when an operation has failed because a member has
  /// left or the signal is raised. Drops nothing: members in other processes wait for this one's part.
  ~StartedOperations();
  StartedOperations(const StartedOperations&) = delete;
  StartedOperations& operator=(const StartedOperations&) = delete;

  /// Queues an operation of a group and returns at once. Its input must not change, and its output
  /// must not be used, until Wait returns. The sizes of an all-to-all are copied.
  Number Start(std::size_t group, const Collective& mine);
  /// Blocks until an operation and all before it are complete. Throws what the first of them that
  /// failed has thrown; none runs after that.
  void Wait(Number number);
  /// Returns the times of those that have run since the last call; none without a clock.
  std::vector<OperationTimes> TakeTimes();

 private:
  struct Started {
    std::size_t group = 0;
    Communicator::Point before;
    Collective call;
    std::vector<std::size_t> send_bytes;
    std::vector<std::size_t> receive_bytes;
  };

  /// An operation in the queue of a device.
  struct Queued {
    std::size_t group = 0;
    Communicator::Point after;
  };

  void Serve();

  const std::vector<std::unique_ptr<Communicator>> groups_;
  const Clock clock_;
  Number last_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Started> queue_;
  Number complete_ = 0;
  std::map<Number, Queued> queued_;  ///< those that have not been waited for
  std::vector<OperationTimes> times_;
  std::exception_ptr failure_;  ///< of operation complete_ + 1
  bool closed_ = false;
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace troupe
