// The facts that `troupe doctor` reads from this machine. checks.hpp judges them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/doctor/checks.hpp"
#include "configs/config.hpp"

namespace troupe {

/// Makes `directory`, writes a file into it, and removes both. Returns the bytes free there. Throws
/// std::runtime_error with the path and the system's error.
std::uint64_t TryDirectory(const std::string& directory);

/// Bytes free on the file system of `path`; nothing if `path` does not exist.
std::optional<std::uint64_t> FreeBytes(const std::string& path);

MemoryFacts ReadMemory();

std::optional<std::uint64_t> PtraceScope();
/// Whether this process may trace any other (CAP_SYS_PTRACE).
bool MayTrace();
/// Reads its own memory as cma reads another process's. Returns the system's error, "" if none.
std::string TryReadingProcess();

ClockFacts ReadClock();
/// "nvidia0", ... in /dev.
std::vector<std::string> NvidiaDevices();

/// Resolves the node's address, if it has one. Blocks as long as the system's resolver does.
NodeFacts LookUp(const ClusterNode& node);
/// Whether `host` resolves to an address of this machine.
bool IsHere(const std::string& host);

/// Returns why a process could not listen on `host`:`port`; "" if it could.
std::string TryListening(const std::string& host, std::uint16_t port);
/// Counts the free ports of a range ("7500-7600"), up to `enough`.
int FreePorts(const std::string& range, int enough);

}  // namespace troupe
