// Starts several `troupe` processes on this machine and stands for them in front of the user: their
// lines come out as one program's, signals go to all, and when they fail the first cause is the
// last line on the screen.
#pragma once

#include <string>
#include <vector>

#include "cli/interrupt.hpp"

namespace troupe {

struct ChildProcess {
  std::string name;                    ///< "n1"
  std::vector<std::string> arguments;  ///< of `troupe`, the verb first
};

/// Waits for all of them. Returns 0, or the exit code of the one that failed first, as far as can
/// be told; kExitLost when it was killed.
int RunChildren(const std::vector<ChildProcess>& children, Interrupt& interrupt);

/// To be called by a child: it ends when the one who started it is gone.
void EndWithParent();

}  // namespace troupe
