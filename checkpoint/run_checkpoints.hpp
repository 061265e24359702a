// The checkpoints of a run: RUN/checkpoints/step-00000120, one folder each (sharded.hpp).
//
// Complete is a folder whose manifest is sound, is of that step, and whose files are all there with
// their sizes and with headers of that step. Everything else is ignored: what an interruption left,
// and what is not ours. The SHA-256 of whole files are left to those who read them (sharded.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace troupe {

/// "RUN/checkpoints/step-00000120"; makes nothing.
std::string CheckpointFolder(const std::string& run_folder, std::int64_t step);

/// The same, for a checkpoint that is about to be written: where a damaged one was passed over, its
/// manifest is removed, for good, so that it never vouches for a mixture of old files and new ones.
/// Throws std::runtime_error when it cannot be.
std::string NewCheckpointFolder(const std::string& run_folder, std::int64_t step);

/// The folder of the complete checkpoint of the highest step; nothing when there is none. `skipped`
/// is given one line for each newer folder that is not complete: path and reason. Throws
/// std::runtime_error when the run's folder cannot be read, and when none of the checkpoints that
/// were once written completely still is: to train from the beginning then is for the user to
/// decide.
std::optional<std::string> NewestCheckpoint(
    const std::string& run_folder,
    const std::function<void(const std::string& line)>& skipped = [](const std::string&) {});

/// Removes complete checkpoints but the newest `keep` (at least 1), and what is incomplete of steps
/// before the newest complete one; what is newer may be being written. A checkpoint loses its
/// manifest first, for good, so that one removed half way is never taken for complete. Throws
/// std::runtime_error when something cannot be removed, std::invalid_argument for keep < 1.
void RemoveOldCheckpoints(const std::string& run_folder, std::int64_t keep);

}  // namespace troupe
