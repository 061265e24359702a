// The last line of a program that fails: why. A program that a launcher has started sends its cause
// to the launcher, which prints the first cause of all its children as the last line.
#pragma once

#include <string>

#include "transport/failure.hpp"

namespace troupe {

/// The number under which a child finds the pipe that takes its causes.
inline constexpr int kCausePipe = 4;

/// Prints `before` (whole lines), then "troupe: " and the text of `cause`, to standard error; or
/// sends `cause` to the launcher. Thread-safe.
void PrintCause(const Failure& cause, const std::string& before = "");

/// From now on causes go to the pipe of the launcher.
void SendCausesToLauncher();

/// Process 0 of a launched job: where its checkpoints are, should it be killed. Nothing happens
/// without a launcher.
void SendRunDirectoryToLauncher(const std::string& directory);

/// What comes through the pipe, each with a zero byte at its end.
struct LauncherRecord {
  enum class Kind : char { kCause = 'C', kRunDirectory = 'D' };
  Kind kind = Kind::kCause;
  Failure cause;          ///< kCause
  std::string directory;  ///< kRunDirectory
};
LauncherRecord ReadLauncherRecord(const std::string& record);

/// kExitLost where another start may succeed, else kExitFailed.
int ExitCodeOf(FailureKind kind);

}  // namespace troupe
