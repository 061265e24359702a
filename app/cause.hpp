// Warnings, and the cause of a failure, which is the last line of the program. A child of a launcher
// sends its cause to the launcher, which prints the first cause of all its children.
#pragma once

#include <cstdint>
#include <string>

#include "transport/failure.hpp"

namespace troupe {

/// Descriptor of the pipe to the launcher, in a child.
inline constexpr int kCausePipe = 4;

/// Prints "troupe: warning: " and the line to standard error. Thread-safe.
void PrintWarning(const std::string& line);

/// Prints `before` (whole lines), then "troupe: " and the text of `cause`, to standard error. In a
/// child of a launcher sends `cause` to the launcher instead. Thread-safe.
void PrintCause(const Failure& cause, const std::string& before = "");

/// Sends all later causes to the launcher.
void SendCausesToLauncher();

/// Reports the run directory to the launcher, which names it if this process is killed. Does
/// nothing without a launcher. Called by process 0.
void SendRunDirectoryToLauncher(const std::string& directory);

/// Reports the generation of the job that this process has joined.
void SendGenerationToLauncher(std::int64_t generation);

/// A record of the pipe; each ends with a zero byte.
struct LauncherRecord {
  enum class Kind : char { kCause = 'C', kRunDirectory = 'D', kGeneration = 'G' };
  Kind kind = Kind::kCause;
  Failure cause;                ///< kCause
  std::string directory;        ///< kRunDirectory
  std::int64_t generation = 0;  ///< kGeneration
};
LauncherRecord ReadLauncherRecord(const std::string& record);

/// kExitLost if another start may succeed, else kExitFailed.
int ExitCodeOf(FailureKind kind);

}  // namespace troupe
