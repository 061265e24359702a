#pragma once

#include <string>
#include <vector>

namespace troupe {

/// Cores this process may use: its affinity mask, limited by the quota of its control group.
int UsableCores();

/// The folders of this process's control groups (version 2), innermost first. In a container often
/// only the root.
std::vector<std::string> ControlGroupFolders();

}  // namespace troupe
