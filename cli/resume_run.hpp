// --resume: which configuration a run goes on with, and where.
#pragma once

#include "cli/cluster_run.hpp"

namespace troupe {

/// Without CONFIG a run goes on with its own. Throws LaunchError where there is neither.
void SettleConfig(ClusterArguments& arguments, const char* verb);

/// Makes --resume the directory to go on in, and says what differs from here on. Throws LaunchError
/// for a run that cannot go on with this configuration.
void GoOn(ClusterArguments& arguments);

}  // namespace troupe
