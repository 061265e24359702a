// The descriptors that one round of a loop waits for.
#pragma once

#include <cstddef>
#include <poll.h>
#include <vector>

#include "cluster/socket.hpp"

namespace troupe {

/// Filled anew every round. Owns no descriptor.
class PollSet {
 public:
  void Clear();
  void Add(int fd, short events);
  /// Until something is ready or `until` is there. Throws SocketError when the system cannot.
  void Wait(Deadline until);
  /// What is ready of a descriptor: 0 if it was not added or nothing is.
  short Ready(int fd) const;

 private:
  std::vector<pollfd> entries_;
  std::vector<std::size_t> places_;  ///< by descriptor: 1 + its place in entries_, 0 = none
};

}  // namespace troupe
