// What simulated processes report to their launcher.
#pragma once

#include <string_view>

namespace troupe::testing {

/// The process id of every launcher.
inline constexpr int kLauncherPid = 999;

/// Takes what the running process writes to the pipe to its launcher. Returns false for other
/// descriptors.
bool TakesOutput(int descriptor, std::string_view bytes);

}  // namespace troupe::testing
