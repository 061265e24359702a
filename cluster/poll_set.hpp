// The descriptors to wait for in one round of a loop, and a way for other threads to end the wait.
#pragma once

#include <cstddef>
#include <poll.h>
#include <vector>

#include "cluster/socket.hpp"
#include "transport/descriptor.hpp"

namespace troupe {

/// Rebuilt every round. Owns no descriptor.
class PollSet {
 public:
  void Clear();
  void Add(int fd, short events);
  /// Waits until a descriptor is ready or until `until`. Throws SocketError on a system error.
  void Wait(Deadline until);
  /// The ready events of a descriptor; 0 if there are none or it was not added.
  short Ready(int fd) const;

 private:
  std::vector<pollfd> entries_;
  std::vector<std::size_t> places_;  ///< by descriptor: 1 + its index in entries_, 0 = none
};

/// Lets one thread wake another from PollSet::Wait. Thread-safe.
class WakeUp {
 public:
  /// Throws SocketError if the process is out of descriptors.
  WakeUp();
  /// Readable from Signal() until Clear().
  int fd() const { return fd_.get(); }
  void Signal() noexcept;
  void Clear() noexcept;

 private:
  Descriptor fd_;
};

}  // namespace troupe
