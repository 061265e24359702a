// Starts this program again as a child, and reads the state of a child that does not end.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>

#include "app/launcher.hpp"
#include "transport/descriptor.hpp"

namespace troupe {

struct StartedChild {
  pid_t pid = -1;
  Descriptor err;     ///< read end of its standard error
  Descriptor causes;  ///< read end of its pipe for causes
};

/// Throws std::runtime_error with the system's error text.
StartedChild StartChild(const ChildProcess& process);

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
