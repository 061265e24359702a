// Collectives that run on a thread of their own while their member goes on.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "transport/communicator.hpp"

namespace troupe {

/// One member's view of a group whose operations are started and waited for. They run in the order
/// in which this member started them, one at a time, on a thread of this object. The order must be
/// the same on all members. Its functions are called on the member's thread only.
class StartedGroup {
 public:
  /// Of the operations of this member, from 1.
  using Number = std::uint64_t;

  /// Takes the member's only view of the group.
  explicit StartedGroup(std::unique_ptr<Communicator> group);
  /// Drops what has not begun. Ends with the operation in progress: when all members have come to
  /// it, one has left, or the group's signal is raised.
  ~StartedGroup();
  StartedGroup(const StartedGroup&) = delete;
  StartedGroup& operator=(const StartedGroup&) = delete;

  int rank() const { return group_->rank(); }
  int size() const { return group_->size(); }

  /// Queues an operation and returns at once. Its input must not change, and its output must not be
  /// used, until Wait returns. The sizes of an all-to-all are copied.
  Number Start(const Collective& mine);
  /// Blocks until an operation and all before it are complete. Throws what the first of them that
  /// failed has thrown; none runs after that.
  void Wait(Number number);
  /// The same for all that were started.
  void WaitForAll() { Wait(last_); }

 private:
  struct Started {
    Collective call;
    std::vector<std::size_t> send_bytes;
    std::vector<std::size_t> receive_bytes;
  };

  void Serve();

  const std::unique_ptr<Communicator> group_;
  Number last_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Started> queue_;
  Number complete_ = 0;
  std::exception_ptr failure_;  ///< of operation complete_ + 1
  bool closed_ = false;
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace troupe
