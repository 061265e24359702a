// Notices when the run directory of a running job is deleted.
#pragma once

#include <memory>
#include <string>

#include "transport/abort_signal.hpp"

namespace troupe {

/// Checks every second while the result lives, and raises `abort` when `directory` is deleted,
/// moved or replaced: nothing more of the run could be saved. Runs on a separate, detached thread,
/// since a file system may not answer.
[[nodiscard]] std::shared_ptr<void> GuardDirectory(const std::string& directory,
                                                   std::shared_ptr<AbortSignal> abort);

}  // namespace troupe
