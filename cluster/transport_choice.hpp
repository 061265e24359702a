// Over what the tensors of a job can travel, from what its processes say of their machines.
#pragma once

#include <string>
#include <vector>

namespace troupe {

/// The transports UCX may choose from, as UCX_TLS: shared memory where processes share it, TCP
/// between machines. Processes of one machine that do not share memory (containers, network
/// namespaces, other users) would be offered shared memory by UCX all the same and never be woken,
/// so then it is TCP for all.
///   hosts  HostIdentity() of every process
std::string ChooseTransports(const std::vector<std::string>& hosts);

/// The network interface that has this address ("10.0.0.1"); empty when none has.
std::string InterfaceOf(const std::string& address);

}  // namespace troupe
