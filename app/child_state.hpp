// The state of a child that does not end or cannot be reaped, as the kernel reports it.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>

namespace troupe {

struct ChildState {
  char letter = '?';  ///< of /proc/PID/stat: R, S, D, T, t, Z
  int status = 0;     ///< as waitpid returns it; valid once the letter is Z
  pid_t tracer = 0;   ///< 0: none, or none in this container
};

/// Returns nothing if there is no such process.
std::optional<ChildState> StateOf(pid_t pid);

/// "state D (it waits for a device or a file system)".
std::string Describe(const ChildState& state);

}  // namespace troupe
