// The verbs about schedules: `troupe schedule show|lint` and `troupe bench schedules`.
#pragma once

#include "cli/commands.hpp"

namespace troupe {

void AddSchedule(CLI::App& app, Command& command);
void AddBench(CLI::App& app, Command& command);

// The parts of `schedule`.
void AddScheduleShow(CLI::App& verb, Command& command);
void AddScheduleLint(CLI::App& verb, Command& command);

}  // namespace troupe
