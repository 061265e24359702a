// Notices that the run directory of a running job is gone.
#pragma once

#include <memory>
#include <string>

#include "transport/abort_signal.hpp"

namespace troupe {

/// While the result lives, looks every second, on a thread of its own that nothing waits for, since
/// a file system may not answer. Raises `abort` when `directory` is deleted, moved or replaced:
/// nothing more of the run could be kept.
[[nodiscard]] std::shared_ptr<void> GuardDirectory(const std::string& directory,
                                                   std::shared_ptr<AbortSignal> abort);

}  // namespace troupe
