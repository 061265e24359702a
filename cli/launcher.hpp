// Starts several `troupe` processes on this machine and stands for them in front of the user: their
// lines come out as one program's, signals go to all, and when they fail the first cause is the last
// line on the screen.
#pragma once

#include <string>
#include <vector>

#include "cli/interrupt.hpp"

namespace troupe {

struct ChildProcess {
  std::string name;                    ///< "n1"
  std::vector<std::string> arguments;  ///< of `troupe`, the verb first
};

/// Waits for all of them. Returns 0, or the exit code of the one that failed first, as far as can be
/// told; kExitLost when it was killed.
int RunChildren(const std::vector<ChildProcess>& children, Interrupt& interrupt);

/// To be called by a child: it ends when the one who started it is gone.
void EndWithParent();

/// What children are given to prove that they belong together: a key in a file that only this user
/// can read, and a free port of the loopback interface. The file goes with this object.
class Meeting {
 public:
  Meeting();
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  const std::string& key_file() const { return key_file_; }
  /// "127.0.0.1:41234": free a moment ago. A new one each time.
  static std::string FreeAddress();

 private:
  std::string folder_;
  std::string key_file_;
};

}  // namespace troupe
