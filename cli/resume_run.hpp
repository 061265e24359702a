// --resume: which configuration a run resumes with, and where.
#pragma once

#include "cli/cluster_run.hpp"

namespace troupe {

/// Without CONFIG a run resumes with its own. Throws LaunchError where there is neither.
void SettleConfig(ClusterArguments& arguments, const char* verb);

/// Makes --resume the directory to write to, and prints what differs from here on. Throws
/// LaunchError for a run that cannot resume with this configuration.
void ResumeRun(ClusterArguments& arguments);

}  // namespace troupe
