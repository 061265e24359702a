// Starts several `troupe` processes on this machine and stands for them in front of the user: their
// lines come out as one program's, signals go to all, and when they fail the first cause is the
// last line on the screen.
#pragma once

#include <chrono>
#include <string>
#include <sys/types.h>
#include <vector>

#include "cli/interrupt.hpp"
#include "transport/failure.hpp"

namespace troupe {

struct ChildProcess {
  std::string name;                    ///< "n1"
  std::vector<std::string> arguments;  ///< of `troupe`, the verb first
  int inherited = -1;                  ///< a descriptor that it gets as kInherited; -1: none
  /// How long it may be stopped by a signal before that is a loss: longer than the other processes
  /// take to see it once they have met. 0: without bound.
  std::chrono::milliseconds longest_stop{0};
};

/// The number under which a child finds the descriptor that it inherits.
inline constexpr int kInherited = 3;

struct ChildrenEnd {
  int exit_code = 0;                       ///< of the first that failed; kExitLost: killed
  FailureKind kind = FailureKind::kError;  ///< of the cause that was printed
};

/// Waits for all of them. A child that SIGKILL does not end is named and left.
ChildrenEnd RunChildren(const std::vector<ChildProcess>& children, Interrupt& interrupt);

/// To be called by a child: it ends when `launcher`, the process that started it, is gone.
void EndWithParent(pid_t launcher);

}  // namespace troupe
