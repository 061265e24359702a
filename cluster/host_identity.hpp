// Which machine a process runs on, and what of it the process sees.
#pragma once

#include <string>

namespace troupe {

/// One line: the kernel's boot id, the inode numbers of the net, ipc and pid namespaces, the user.
/// "boot=4f1c... net=4026531840 ipc=4026531839 pid=4026531836 uid=1000"; what /proc does not
/// tell is "?" and equal to nothing.
std::string HostIdentity();

/// Both run under the same kernel, since the same boot.
bool SameMachine(const std::string& a, const std::string& b);
/// The same machine, namespaces and user: one may attach the other's shared memory by its number.
/// Mount namespaces are not compared: two containers with a /dev/shm each are not told apart.
bool SharesMemory(const std::string& a, const std::string& b);

}  // namespace troupe
