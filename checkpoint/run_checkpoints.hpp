// The checkpoints of a run: RUN/checkpoints/step-00000120, one folder each (sharded.hpp).
//
// Complete is a folder whose manifest is sound, is of that step, and whose files are all there with
// their sizes. Everything else is ignored: what an interruption left, and what is not ours.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

/// "RUN/checkpoints/step-00000120"; makes nothing.
std::string CheckpointFolder(const std::string& run_folder, std::int64_t step);

/// The folder of the complete checkpoint of the highest step; nothing when there is none. Throws
/// std::runtime_error when the run's folder cannot be read.
std::optional<std::string> NewestCheckpoint(const std::string& run_folder);

/// Removes complete checkpoints but the newest `keep` (at least 1), and what is incomplete of steps
/// before the newest complete one; what is newer may be being written. A checkpoint loses its
/// manifest first, for good, so that one removed half way is never taken for complete. Throws
/// std::runtime_error when something cannot be removed, std::invalid_argument for keep < 1.
void RemoveOldCheckpoints(const std::string& run_folder, std::int64_t keep);

}  // namespace troupe
