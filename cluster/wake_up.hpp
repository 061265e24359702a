// Lets one thread end another's wait in poll.
#pragma once

namespace troupe {

/// Thread-safe. Throws SocketError when the system has no descriptor left.
class WakeUp {
 public:
  WakeUp();
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;
  ~WakeUp();
  /// Readable from Signal() until Clear().
  int fd() const { return fd_; }
  void Signal() noexcept;
  void Clear() noexcept;

 private:
  int fd_;
};

}  // namespace troupe
