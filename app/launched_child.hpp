// One process that a launcher has started: what it knows of it, and how it describes its end.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>

#include "transport/descriptor.hpp"

namespace troupe {

struct LaunchedChild {
  /// Text from a child, split at each `end`.
  struct Stream {
    Descriptor descriptor;  ///< read end
    char end = '\n';
    std::string partial;
  };

  std::size_t place = 0;  ///< among the processes
  std::string name;
  pid_t pid = -1;
  Stream err;                ///< its standard error
  Stream causes;             ///< its pipe for causes
  int times = 0;             ///< that its place was started again
  std::int64_t started = 0;  ///< in this generation of the job
  std::int64_t joined = -1;  ///< the latest generation that it has joined
  bool running = true;
  bool reported = false;                      ///< it has sent a cause
  bool replaced = false;                      ///< another was started in its place
  bool dismissed = false;                     ///< it waits for a job that is done
  bool killed = false;                        ///< by a signal that the launcher did not send
  bool stopped = false;                       ///< by a signal at least once; may run again
  std::chrono::milliseconds longest_stop{0};  ///< see ChildProcess
  std::optional<std::chrono::steady_clock::time_point> stopped_at{};  ///< while it is stopped
  int status = 0;                                                     ///< as waitpid returns it
  std::optional<std::chrono::steady_clock::time_point>
      ended_at{};      ///< it has ended and cannot be reaped
  bool leads = false;  ///< process 0 of the job
  /// The generation of the job for another process in its place. For process 0 never the first: the job
  /// may have met just before process 0 was lost; the others then continue that run.
  std::int64_t next_generation() const {
    return std::max({std::int64_t{leads ? 1 : 0}, started, joined + 1});
  }
};

// Of a status, as waitpid returns it.

bool KilledBy(int status, int signal);
/// Whether it was killed by a signal with which a user ends a program.
bool AsksToEnd(int status);
/// The exit code. A closed output is not a loss: the user closed it, and another start would fail in
/// the same way.
int CodeOf(int status);

// Lines about a child.

/// Of one that a signal has killed.
std::string KilledLine(const LaunchedChild& child);
/// Of one that a signal has stopped for longer than it may.
std::string StoppedLine(const LaunchedChild& child);
/// Of one that is lost in any way.
std::string LossLine(const LaunchedChild& child);

}  // namespace troupe
