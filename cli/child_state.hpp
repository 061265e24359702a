// What the system knows of a child that does not end, or that cannot be reaped.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>

namespace troupe {

struct ChildState {
  char letter = '?';  ///< of /proc/PID/stat: R, S, D, T, t, Z
  int status = 0;     ///< how it ended, as waitpid gives it, once the letter is Z
  pid_t tracer = 0;   ///< 0: none, or none in this container
};

/// Nothing when there is no such process.
std::optional<ChildState> StateOf(pid_t pid);

/// "state D (it waits for a device or a file system)".
std::string Describe(const ChildState& state);

}  // namespace troupe
