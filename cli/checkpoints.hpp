// What `troupe ckpt` says of checkpoints.
#pragma once

#include <string>

#include "cli/commands.hpp"

namespace troupe {

/// Prints what a checkpoint holds, or the newest complete one of a run, without reading values.
/// Returns the exit code.
int InspectCheckpoint(const std::string& path);

/// Adds ls, verify and diff.
void AddCheckpointVerbs(CLI::App& ckpt, Command& command);

}  // namespace troupe
