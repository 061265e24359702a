// What `troupe doctor` reads of this machine. Nothing is judged here: see checks.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/doctor/checks.hpp"
#include "configs/config.hpp"

namespace troupe {

/// Makes `directory`, writes a file into it, and removes what it has made. Returns the bytes free
/// there. Throws std::runtime_error naming the path and the system's words.
std::uint64_t TryDirectory(const std::string& directory);

/// Bytes free on the file system of `path`; nothing if it is not there.
std::optional<std::uint64_t> FreeBytes(const std::string& path);

MemoryFacts ReadMemory();
/// Cores this process may use: its affinity, cut down by its control group's share.
int UsableCores();

std::optional<int> PtraceScope();
/// Whether this process may trace any other (CAP_SYS_PTRACE).
bool MayTrace();
/// Reads its own memory as cma reads another process's; empty, or the system's words.
std::string TryReadingProcess();

ClockFacts ReadClock();
/// "nvidia0", ... in /dev.
std::vector<std::string> NvidiaDevices();

/// Resolves the node's address, if it has one. Takes as long as the system's resolver does.
NodeFacts LookUp(const ClusterNode& node);
/// Whether `host` resolves to an address of this machine.
bool IsHere(const std::string& host);

/// Why nobody could listen on `host`:`port`, empty if somebody could.
std::string TryListening(const std::string& host, std::uint16_t port);
/// Free ones of "7500-7600"; stops counting at `enough`.
int FreePorts(const std::string& range, int enough);

}  // namespace troupe
