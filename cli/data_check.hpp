// `troupe data check`: every fault of a data set at once.
#pragma once

#include "cli/commands.hpp"

namespace troupe {

void AddDataCheck(CLI::App& data, Command& command);

}  // namespace troupe
