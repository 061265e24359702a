// Lets one thread wake another from poll.
#pragma once

namespace troupe {

/// Thread-safe. Throws SocketError if the process is out of descriptors.
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
