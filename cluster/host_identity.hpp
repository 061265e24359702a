// Identifies the machine a process runs on and the namespaces it sees.
#pragma once

#include <string>

namespace troupe {

/// One line: the kernel's boot id, the inode numbers of the net, ipc and pid namespaces, the user.
/// "boot=4f1c... net=4026531840 ipc=4026531839 pid=4026531836 uid=1000". "?" stands for a value
/// that /proc does not give; it equals nothing.
std::string HostIdentity();

/// Whether both run under the same kernel, since the same boot.
bool SameMachine(const std::string& a, const std::string& b);
/// Whether machine, namespaces and user are the same, so that one process may attach the other's
/// shared memory by its number. Mount namespaces are not compared: two containers with separate
/// /dev/shm are not detected.
bool SharesMemory(const std::string& a, const std::string& b);

/// The machine's name, "localhost" if it has none.
std::string HostName();

}  // namespace troupe
