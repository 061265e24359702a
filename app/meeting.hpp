// The run key and the address by which the processes that a launcher starts on this machine meet.
#pragma once

#include <string>

namespace troupe {

/// Holds a run key in memory, for children to inherit, and free ports of the loopback interface.
/// Both are released however the processes end.
class Meeting {
 public:
  /// Throws std::runtime_error if the system has no memory or no descriptor left.
  Meeting();
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  /// A descriptor that RunKey::FromDescriptor reads; owned by this object.
  int key() const { return key_; }
  /// Returns a loopback address whose port was free a moment ago ("127.0.0.1:41234"), a new one
  /// each time.
  static std::string FreeAddress();

 private:
  int key_;
};

}  // namespace troupe
