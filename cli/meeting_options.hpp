// How the processes of a job meet and how their tensors travel, from the configuration: what one
// process says of itself, and the settings of its data plane.
#pragma once

#include <cstdint>
#include <string>

#include "cluster/join.hpp"
#include "cluster/process_plan.hpp"
#include "cluster/run_key.hpp"
#include "configs/config.hpp"
#include "transport/ucx_plane.hpp"

namespace troupe {

/// `address`: this node's own, empty for the configured one or the one it reaches `seed` from.
/// `build`: what all must have in common besides the configuration.
JoinOptions JoinOptionsOf(const Config& config, const ProcessPlan& plan, ProcessId self,
                          const Address& seed, const std::string& address,
                          const std::string& build);

/// All but abort, store and peer_failed.
UcxOptions PlaneOptionsOf(const Config& config, const Roster& roster, ProcessId self,
                          const RunKey& key);

}  // namespace troupe
