// Lines for the user of a job that has failed: how to resume it, and where a restart begins.
#pragma once

#include <optional>
#include <string>

#include "configs/config.hpp"
#include "transport/failure.hpp"

namespace troupe {

/// Where a training restarts whose run directory is `directory`: "after step 8", or "from the
/// beginning: " and why. Throws std::runtime_error when the directory cannot be read.
std::string RestartPlace(const std::string& directory, const CheckpointConfig& checkpoints);

/// A line for the user of a run in `directory` that has failed with `kind`: how to resume it, or
/// that there is nothing to resume from; empty where the cause says it. `steps` are in the newest
/// complete checkpoint; 0: there is none.
std::string AdviceAfterFailure(FailureKind kind, const std::string& directory, std::int64_t steps);

/// The same with the steps that the disk has, once nothing writes there.
std::string AdviceAfterFailure(FailureKind kind, const std::string& directory);

/// Reads all of the newest checkpoint of `directory`. Where its bytes are not those that were
/// written, renames it to NAME.damaged, so that the one before it is the newest, and returns a line
/// for the user. Throws std::runtime_error when the system refuses.
std::optional<std::string> SetAsideIfDamaged(const std::string& directory);

}  // namespace troupe
