// What a user is told of a job that may be, or is, started anew.
#pragma once

#include <optional>
#include <string>

#include "configs/config.hpp"

namespace troupe {

/// Where a training goes on whose run directory is `directory`: "after step 8", or "from the
/// beginning: " and why. Throws std::runtime_error when the directory cannot be read.
std::string WhereAnew(const std::string& directory, const CheckpointConfig& checkpoints);

/// "go on with: troupe train ... --resume RUN", or why there is nothing to go on from. `steps` are
/// in the newest complete checkpoint of `directory`; 0: it has none.
std::string WhatToDoAfterFailure(const std::string& directory, std::int64_t steps);

/// Reads all of the newest checkpoint of `directory`. Where its bytes are not those that were
/// written, renames it to NAME.damaged, so that the one before it is the newest, and returns a line
/// for the user. Throws std::runtime_error when the system refuses.
std::optional<std::string> SetAsideIfDamaged(const std::string& directory);

}  // namespace troupe
