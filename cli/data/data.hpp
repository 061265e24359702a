// The verbs of `troupe data`. Each sets `command` when it is on the command line.
#pragma once

#include "cli/commands.hpp"

namespace troupe {

void AddDataCheck(CLI::App& data, Command& command);
void AddDataIndex(CLI::App& data, Command& command);
void AddDataShow(CLI::App& data, Command& command);
void AddDataStat(CLI::App& data, Command& command);

}  // namespace troupe
