// Over what the tensors of a job travel, from what its processes say of their machines.
#pragma once

#include <string>
#include <vector>

#include "configs/config.hpp"

namespace troupe {

/// What carries the tensors of two processes.
enum class Carrier {
  kUcx,       ///< shared memory, RDMA, or TCP where the configuration says so
  kProvenTcp  ///< a connection that the join has made and proven
};

/// For processes with these HostIdentity()s, the same on both sides.
///   ucx_tls     shared memory    else
///   "auto"      kUcx             kProvenTcp, with tcp = "ucx" kUcx
///   "none"      kProvenTcp       kProvenTcp
///   a list      kUcx             kUcx, where the list has more than shared memory; else as "auto"
Carrier ChooseCarrier(const TransportConfig& transport, const std::string& host,
                      const std::string& other);

/// The transports UCX may choose from, as UCX_TLS, in a job whose processes have these
/// HostIdentity()s. System V segments are left out: their mode is 0660, so another user of the
/// same group could write tensors. Processes of one machine that do not share memory (containers,
/// network namespaces, other users) would be offered shared memory by UCX all the same and never be
/// woken, so where UCX connects them it is TCP for all.
std::string ChooseUcxTransports(const TransportConfig& transport,
                                const std::vector<std::string>& hosts);

/// The network interface that has this address ("10.0.0.1"); empty when none has.
std::string InterfaceOf(const std::string& address);

}  // namespace troupe
