// Those who do not belong to a job and come to its ports all the same.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "cluster/socket.hpp"

namespace troupe::testing {

/// Calls `action` on a thread of its own that lives on the host with that namespace. What it throws
/// is thrown here.
void OnHost(const std::string& name, const std::function<void()>& action);

/// Of all 65535 ports of `address`, those that accept a connection from the host with the namespace
/// `from`, ascending. A port that answers nothing for 10 s throws std::runtime_error.
std::vector<int> OpenPorts(const std::string& from, const std::string& address);

/// The TCP ports at which anybody listens on the host with that namespace, ascending.
std::vector<int> ListeningPorts(const std::string& name);
/// The TCP ports at which `process` of this host listens, ascending.
std::vector<int> ListeningPorts(pid_t process);

/// The abstract names of the UNIX datagram sockets of these processes.
std::vector<std::string> DatagramSockets(const std::vector<pid_t>& processes);
/// Sends `bytes` so many times to a socket of that name; those that it does not take are dropped.
void SendDatagrams(const std::string& name, const std::vector<std::byte>& bytes, int times);

/// What ends a process whose UCX 1.13 reads it from a connection to its TCP port.
std::vector<std::byte> BytesThatAbortUcx();
/// Bytes that are the same for the same seed.
std::vector<std::byte> RandomBytes(std::size_t size, unsigned seed);

/// Connects to `address`, behaves as requested and stays until the other side closes, or `until`.
/// Neither a refusal nor a connection that breaks is an error.
void Visit(const Address& address, Deadline until, const std::function<void(Socket&)>& behave);

}  // namespace troupe::testing
