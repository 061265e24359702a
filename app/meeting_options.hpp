// Options by which one process of a job joins the others, from the configuration.
#pragma once

#include <chrono>
#include <memory>

#include "app/member_arguments.hpp"
#include "cluster/join.hpp"
#include "cluster/run_key.hpp"
#include "cluster/tls.hpp"
#include "configs/config.hpp"
#include "plan/process_plan.hpp"

namespace troupe {

/// Returns the TLS context of the connections between processes that meet at `seed`, which it must
/// outlive; null if they are not encrypted. Throws LaunchError if files are missing or do not
/// match, and JoinError if the name in `seed` does not resolve within `patience`.
std::unique_ptr<TlsContext> TlsOf(const ClusterConfig& cluster, const Address& seed,
                                  std::chrono::milliseconds patience);

std::chrono::milliseconds Milliseconds(double seconds);

/// The configuration, one "key = value" per line, without the keys that may differ between
/// processes.
std::string ConfigLines(const Config& config);

/// Returns all options but build, attempt, run_directory, listening and tls. The process's address
/// is the one in `arguments`, else the configured one, else the one from which it reaches `seed`.
JoinOptions JoinOptionsOf(const Config& config, const ProcessPlan& plan, ProcessId self,
                          const Address& seed, const MemberArguments& arguments);

}  // namespace troupe
