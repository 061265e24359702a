// Starts several `troupe` processes on this machine and presents them as one program: it prints
// their lines, forwards signals to all of them, starts lost ones again, and when they fail prints the
// first cause as the last line.
#pragma once

#include <chrono>
#include <string>
#include <sys/types.h>
#include <vector>

#include "app/interrupt.hpp"
#include "transport/failure.hpp"

namespace troupe {

struct ChildProcess {
  std::string name;                    ///< "n1"
  std::vector<std::string> arguments;  ///< the verb first
  int key = -1;                        ///< descriptor to pass on as kInheritedKey; -1: none
  int config = -1;                     ///< descriptor to pass on as kInheritedConfig; -1: none
  /// A child that a signal stops for longer is lost. Longer than processes that have met take to
  /// find a stopped one. 0: no bound.
  std::chrono::milliseconds longest_stop{0};
  bool leads = false;           ///< process 0 of the job
  std::int64_t generation = 0;  ///< of the job that it first joins
};

/// Descriptors that a child inherits; kCausePipe has the number between them.
inline constexpr int kInheritedKey = 3;
inline constexpr int kInheritedConfig = 5;

/// Starts the children and waits for all of them. One that was killed, or could not go on after the
/// loss of another, is started again, at most `restarts` times. So are those that had ended well
/// before: the next generation of the job needs them, too. Names and leaves a child that SIGKILL does
/// not end. Returns the exit code of the first that failed; kExitLost if it was killed.
int RunChildren(const std::vector<ChildProcess>& children, Interrupt& interrupt, int restarts = 0);

/// Makes this process get `signal` when `launcher`, its parent, ends. Called by a child.
void EndWithParent(pid_t launcher, int signal);

}  // namespace troupe
