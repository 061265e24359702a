// What processes that one of them has started on this machine are given to prove that they belong
// together.
#pragma once

#include <string>

namespace troupe {

/// A key in memory, for children to inherit, and a free port of the loopback interface. Nothing of
/// it stays behind, however the processes end.
class Meeting {
 public:
  /// Throws std::runtime_error when the system has no memory or no descriptor left.
  Meeting();
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  /// A descriptor that RunKey::FromDescriptor reads; owned by this object.
  int key() const { return key_; }
  /// "127.0.0.1:41234": free a moment ago. A new one each time.
  static std::string FreeAddress();

 private:
  int key_;
};

}  // namespace troupe
