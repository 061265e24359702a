// Keeps strangers from UCX's TCP port: the kernel drops their packets before a connection exists.
#pragma once

#include <string>
#include <vector>

namespace troupe {

/// The listening TCP sockets of this process, as descriptors.
std::vector<int> ListeningSockets();

/// From now on the socket, and each that is accepted from it, hears only these addresses
/// ("10.0.0.1", "fd00::1"). It cannot be undone. Throws std::runtime_error: an address that is
/// none, more of them than a filter holds, or the system's words.
void AdmitOnly(int socket, const std::vector<std::string>& addresses);

/// AdmitOnly for every listening socket that is not in `before`.
void AdmitOnlyBySockets(const std::vector<int>& before, const std::vector<std::string>& addresses);

}  // namespace troupe
