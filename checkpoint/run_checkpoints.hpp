// The checkpoints of a run: RUN/checkpoints/step-00000120, one folder each (sharded.hpp).
// A folder is complete if its manifest is sound and of that step, and all its files exist with
// their sizes and with headers of that step. Everything else is ignored: remains of interrupted
// writes, and foreign files. The SHA-256 of whole files is checked when they are read
// (sharded.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// "RUN/checkpoints/step-00000120"; creates nothing.
std::string CheckpointFolder(const std::string& run_folder, std::int64_t step);

/// "RUN/memory/step-00000120.g2", the name of the state after that step in memory (HeldFiles), which
/// generation 2 of the job holds: those of two generations are never mixed.
std::string HeldFolder(const std::string& run_folder, std::int64_t step, std::int64_t generation);

/// Like CheckpointFolder, for a checkpoint that is about to be written. Removes the manifest of a
/// damaged checkpoint of that step and flushes the removal, so that the manifest never vouches for
/// a mixture of old and new files. Throws std::runtime_error if that fails.
std::string NewCheckpointFolder(const std::string& run_folder, std::int64_t step);

/// The folder of the complete checkpoint of the highest step; nothing if there is none. Calls
/// `skipped` with one line for each newer incomplete folder: path and reason. Throws
/// std::runtime_error if the run's folder cannot be read, and if all checkpoints that were once
/// complete are damaged: then the user must decide whether to train from the beginning.
std::optional<std::string> NewestCheckpoint(
    const std::string& run_folder,
    const std::function<void(const std::string& line)>& skipped = [](const std::string&) {});

struct FoundCheckpoint {
  std::int64_t step = 0;
  std::string folder;
  std::string fault;  ///< why it is not complete; empty: it is
};
/// Returns the checkpoints of a run, newest first. Throws like NewestCheckpoint, but not for damage.
std::vector<FoundCheckpoint> AllCheckpoints(const std::string& run_folder);

/// Compares all files of a complete checkpoint with the sums in its manifest. Returns the path of the
/// first that is damaged, "" if none is. Throws std::runtime_error if one cannot be read.
std::string DamagedFile(const std::string& checkpoint);

/// Returns the run of a checkpoint's folder: the reverse of CheckpointFolder.
std::string RunOf(const std::string& checkpoint);

/// Makes the folder, whose files are written, a checkpoint by the text of its manifest. If the nodes of
/// the job share none, it notes that this is `disk` (CheckpointFile::disk): files of that disk must be
/// here. Throws std::runtime_error.
void PublishCheckpoint(const std::string& folder, const std::string& manifest,
                       const std::string& disk);

/// Removes all checkpoints of a run but those of `steps`, complete or not. Throws std::runtime_error.
void KeepCheckpoints(const std::string& run_folder, const std::vector<std::int64_t>& steps);

/// Removes all complete checkpoints except the newest `keep` (at least 1) and those of steps that
/// `keep_every` divides (0: of none), and incomplete ones
/// older than the newest complete one; newer ones may still be written. Removes the manifest of a
/// checkpoint first and flushes that, so that a half-removed checkpoint never counts as complete.
/// Throws std::runtime_error if a removal fails, std::invalid_argument for keep < 1.
void RemoveOldCheckpoints(const std::string& run_folder, std::int64_t keep,
                          std::int64_t keep_every = 0);

}  // namespace troupe
