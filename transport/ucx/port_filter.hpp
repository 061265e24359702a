// Restricts UCX's TCP port to known peers: the kernel drops other packets before a connection
// exists.
#pragma once

#include <string>
#include <vector>

namespace troupe {

/// The listening TCP sockets of this process, as descriptors.
std::vector<int> ListeningSockets();

/// From now on the socket, and each one accepted from it, receives packets only from these
/// addresses ("10.0.0.1", "fd00::1"). Irreversible. Throws std::runtime_error for a malformed
/// address, for more addresses than a filter holds, and for a system error.
void AdmitOnly(int socket, const std::vector<std::string>& addresses);

/// AdmitOnly for every listening socket that is not in `before`.
void AdmitOnlyBySockets(const std::vector<int>& before, const std::vector<std::string>& addresses);

}  // namespace troupe
