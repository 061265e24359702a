// How the processes of a job meet, from the configuration: what one process says of itself.
#pragma once

#include <chrono>
#include <memory>

#include "cli/member_arguments.hpp"
#include "cluster/join.hpp"
#include "cluster/process_plan.hpp"
#include "cluster/run_key.hpp"
#include "cluster/tls.hpp"
#include "configs/config.hpp"

namespace troupe {

/// What secures the connections between processes that meet at `seed`; null where nothing does. It
/// must outlive them. Throws LaunchError when there should be files and are none, or when they do
/// not fit together, and JoinError when nobody has known the name in `seed` for `patience`.
std::unique_ptr<TlsContext> TlsOf(const ClusterConfig& cluster, const Address& seed,
                                  std::chrono::milliseconds patience);

/// The configuration, one "key = value" a line, without what each process may have of its own.
std::string ConfigLines(const Config& config);

/// All but build, attempt, run_directory, listening and tls. The process's own address is the one
/// it was told, else the configured one, else the one it reaches `seed` from.
JoinOptions JoinOptionsOf(const Config& config, const ProcessPlan& plan, ProcessId self,
                          const Address& seed, const MemberArguments& arguments);

}  // namespace troupe
