// Opens the data plane of a process, from the configuration and the roster of the processes that
// have met: UCX, proven TCP, or both.
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

/// Returns a function for JoinOptions::tensors.
std::function<bool(const Hello& one, const Hello& other)> NeedsConnection(
    const TransportConfig& transport);

/// Uses abort, store, to_host and peer_failed of `settings` and sets the rest. Takes the
/// connections for tensors out of `joined`. Throws as the constructors of the planes do.
std::unique_ptr<Plane> OpenTensorPlane(const Config& config, Joined& joined, ProcessId self,
                                       const RunKey& key, PlaneSettings settings = {});

/// Returns the UCX options that a job with `here` processes on this machine would use, `elsewhere`
/// if it has processes on other machines; null if it would not use UCX.
std::unique_ptr<UcxOptions> UcxOptionsHere(const TransportConfig& transport, int here,
                                           bool elsewhere);

/// "posix + cma (n1), proven tcp (n2): ...", with the reason for each use of TCP.
std::string DescribeTensorPlane(const Plane& plane, const Roster& roster,
                                const TransportConfig& transport);

}  // namespace troupe
