// Over what the tensors of a job travel, from what its processes say of their machines.
#pragma once

#include <string>

namespace troupe {

/// What carries the tensors of two processes.
enum class Carrier {
  kUcx,       ///< shared memory, and what the configuration names
  kProvenTcp  ///< a connection that the join has made and proven
};

/// For processes with these HostIdentity()s, by `transport.ucx_tls`; the same on both sides.
///   ucx_tls     shared memory    else
///   "auto"      kUcx             kProvenTcp
///   "none"      kProvenTcp       kProvenTcp
///   a list      kUcx             kUcx, where the list has more than shared memory; else kProvenTcp
Carrier ChooseCarrier(const std::string& ucx_tls, const std::string& host,
                      const std::string& other);

/// The transports UCX may choose from, as UCX_TLS. System V segments are left out unless they are
/// named: their mode is 0660, so another user of the same group could write tensors.
std::string ChooseUcxTransports(const std::string& ucx_tls);

/// Whether a list of UCX's transports has TCP in it, with which UCX listens on a port.
bool NamesTcp(const std::string& ucx_tls);

/// The network interface that has this address ("10.0.0.1"); empty when none has.
std::string InterfaceOf(const std::string& address);

}  // namespace troupe
