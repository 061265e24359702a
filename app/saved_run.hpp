// The parameters that a run has left in its directory.
#pragma once

#include <string>

#include "checkpoint/saved_parameters.hpp"

namespace troupe {

struct SavedRun {
  std::string directory;
  std::string parameters;  ///< the checkpoint or the file
  SavedParameters saved;
};

/// Returns the run directory that `path` names: itself, or that of a checkpoint,
/// RUN/checkpoints/step-00000120. "" if there is none.
std::string RunDirectoryOf(const std::string& path);

/// Opens the checkpoint at `path`, or a run's final parameters, or those of its newest checkpoint if
/// that is newer. Throws std::runtime_error if there are none, or they cannot be read.
SavedRun OpenSavedRun(const std::string& path);

}  // namespace troupe
