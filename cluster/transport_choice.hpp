// Chooses the transport of a job's tensors from the host identities of its processes.
#pragma once

#include <string>
#include <vector>

#include "configs/config.hpp"

namespace troupe {

/// The transport of the tensors of two processes.
enum class Carrier {
  kUcx,       ///< shared memory, RDMA, or TCP where the configuration says so
  kProvenTcp  ///< a connection that the join has made and authenticated
};

/// For processes with these HostIdentity()s; the same on both sides.
///   ucx_tls     shared memory    else
///   "auto"      kUcx             kProvenTcp, with tcp = "ucx" kUcx
///   "none"      kProvenTcp       kProvenTcp
///   a list      kUcx             kUcx if the list has more than shared memory; else as "auto"
Carrier ChooseCarrier(const TransportConfig& transport, const std::string& host,
                      const std::string& other);

/// The value of UCX_TLS for a job whose processes have these HostIdentity()s. Excludes System V
/// segments: their mode is 0660, so another user of the same group could write tensors. UCX also
/// offers shared memory to processes of one machine that do not share it (containers, network
/// namespaces, other users), and these would then never wake up. If there are such processes and
/// UCX connects them, all processes use TCP.
std::string ChooseUcxTransports(const TransportConfig& transport,
                                const std::vector<std::string>& hosts);

/// The network interface with this address ("10.0.0.1"); empty if none has it.
std::string InterfaceOf(const std::string& address);

}  // namespace troupe
