// Starts this program again as a child.
#pragma once

#include <sys/types.h>

#include "app/launcher.hpp"

namespace troupe {

struct StartedChild {
  pid_t pid = -1;
  int err = -1;     ///< read end of its standard error
  int causes = -1;  ///< read end of its pipe for causes
};

/// Throws std::runtime_error with the system's error text.
StartedChild StartChild(const ChildProcess& process);

}  // namespace troupe
