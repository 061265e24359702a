#pragma once

namespace troupe {

/// Number of a process in the job, [0, n); the same in every process.
using ProcessId = int;

}  // namespace troupe
