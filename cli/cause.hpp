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

/// What a cause is in the pipe, but for the zero byte at its end, and back.
std::string CauseRecord(const Failure& cause);
Failure ReadCauseRecord(const std::string& record);

/// kExitLost where another start may succeed, else kExitFailed.
int ExitCodeOf(FailureKind kind);

}  // namespace troupe
