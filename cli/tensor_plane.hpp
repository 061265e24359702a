// The data plane of a process, from the configuration and what the processes know of each other
// once they have met: UCX, proven TCP, or both.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cluster/join.hpp"
#include "cluster/run_key.hpp"
#include "configs/config.hpp"
#include "transport/plane.hpp"
#include "transport/ucx/plane.hpp"

namespace troupe {

/// For JoinOptions::tensors.
std::function<bool(const Hello& one, const Hello& other)> NeedsConnection(
    const TransportConfig& transport);

/// What `settings` has of abort, store, to_host and peer_failed is taken over, the rest is set.
/// Takes the connections for tensors out of `joined`. Throws as the constructors of the planes do.
std::unique_ptr<Plane> OpenTensorPlane(const Config& config, Joined& joined, ProcessId self,
                                       const RunKey& key, PlaneSettings settings = {});

/// UCX as a job would use it alone on this machine, `elsewhere` if it has processes on others; null
/// where it would not.
std::unique_ptr<UcxOptions> UcxOptionsHere(const TransportConfig& transport, int here,
                                           bool elsewhere);

/// "posix + cma (n1), proven tcp (n2): ...", with the reason for what carries TCP.
std::string DescribeTensorPlane(const Plane& plane, const Roster& roster,
                                const TransportConfig& transport);

}  // namespace troupe
