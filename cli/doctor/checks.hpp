// What `troupe doctor` finds, and how it judges what it has read: pure, so that every verdict can
// be had without the machine that deserves it. facts.hpp reads, machine.hpp combines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/join_problem.hpp"
#include "configs/config.hpp"

namespace troupe {

enum class Verdict : std::uint8_t {
  kOk,
  kWarning,  ///< the job would run, slower or with less to rely on
  kFailure   ///< the job would fail
};

struct Finding {
  std::string name;  ///< what was looked at: "ports"
  Verdict verdict = Verdict::kOk;
  std::string line;    ///< one line
  std::string advice;  ///< one line, what to do about it; empty where `line` says so or all is well
};
using Findings = std::vector<Finding>;

Finding Well(std::string name, std::string line);
Finding Warns(std::string name, std::string line, std::string advice);
Finding Fails(std::string name, std::string line, std::string advice);

bool AnyFailure(const Findings& findings);
/// One aligned line each, failures last, warnings before them, advice below its line; then a line
/// that counts them.
std::string FindingsTable(Findings findings);

/// Bytes a run leaves behind on one machine: weights, and the checkpoints that are kept.
struct DiskNeed {
  std::uint64_t weights = 0;
  std::uint64_t checkpoint = 0;  ///< of one
  std::int64_t kept = 2;
};
Finding CheckDisk(const std::string& directory, std::uint64_t free, const DiskNeed& need);

struct MemoryFacts {
  std::uint64_t available = 0;              ///< MemAvailable, bytes
  std::optional<std::uint64_t> group_left;  ///< to the control group's limit, if it has one
};
/// `estimate`: of all ranks here, bytes, without what the `processes` take themselves.
Finding CheckMemory(std::uint64_t estimate, int processes, const MemoryFacts& facts);

Finding CheckCores(int ranks, int cores);
/// `limit`: open files that a process may have; `processes`: of the whole job.
Finding CheckDescriptors(std::uint64_t limit, int processes);

/// `free`: of /dev/shm, bytes; nothing if there is none. `processes`: of this machine.
Finding CheckSharedMemory(std::optional<std::uint64_t> free, int processes);
/// `ptrace_scope`: kernel.yama.ptrace_scope, nothing where the kernel has no Yama. `error`: what
/// the kernel says of reading a process's memory, empty when it allows it. `privileged`: may trace
/// whatever the scope says.
Finding CheckCma(std::optional<int> ptrace_scope, const std::string& error, bool privileged);

struct ClockFacts {
  bool synchronised = false;
  std::string error;  ///< why it is not known; else empty
};
Finding CheckClock(const ClockFacts& facts);

/// A node's address as this machine sees it.
struct NodeFacts {
  std::string name;
  std::string address;    ///< as configured; empty: the launcher knows
  std::string resolved;   ///< the first address in digits; empty when it does not resolve
  std::string error;      ///< then the resolver's words
  std::string interface;  ///< the one here that has it; empty: another machine's
  int mtu = 0;            ///< of that interface; 0 = not known
  bool here() const { return !interface.empty(); }
};
/// `self`: position of the node that this machine is known to be, or nothing.
Findings CheckNames(const std::vector<NodeFacts>& nodes, std::optional<int> self);

/// `error`: why process 0 could not listen there, empty if it could.
Finding CheckJoinPort(const std::string& address, const std::string& error);
/// `free` ports of `range` of the `needed` ones, one a process.
Finding CheckPortRange(const std::string& range, int free, int needed);

/// What the ranks on a GPU need, about, and what it has.
struct GpuMemory {
  int gpu = 0;
  std::string name;
  std::vector<int> ranks;
  std::uint64_t need = 0;
  std::uint64_t all = 0;
};
/// The fullest, in proportion; nothing for none.
Findings CheckGpuMemory(const std::vector<GpuMemory>& gpus);

/// `devices`: of NVIDIA, by name.
/// `needed` GPUs on this machine for backend "cuda", and what the build lacks for it ("": nothing).
Finding CheckDevices(const std::vector<std::string>& devices, Backend backend, int needed,
                     const std::string& missing);
/// The driver may show this process fewer GPUs than the machine has: `found`, of which backend
/// "cuda" needs those of `ranks`. Nothing where they suffice.
Findings CheckVisibleGpus(const ClusterConfig& cluster, const std::vector<int>& ranks, int found);

/// Between the first process and one other.
struct PathFacts {
  std::string node;
  double round_trip_s = 0.0;       ///< the median
  double best_round_trip_s = 0.0;  ///< how far the clocks are apart is known to half of it
  double clock_ahead_s = 0.0;      ///< the other's wall clock before the first's
  int mtu_there = 0;               ///< of the path to it, as each end knows it; 0 = not known
  int mtu_back = 0;
};
/// `suspect_after_s`: silence after which a process is suspected.
Finding CheckPath(const PathFacts& facts, double suspect_after_s);
Finding CheckClockDifference(const PathFacts& facts);

struct TransferFacts {
  std::string node;
  std::uint64_t bytes = 0;
  double there_s = 0.0;
  double back_s = 0.0;
  bool intact = true;     ///< what arrived is what was sent
  std::string transport;  ///< "sysv + cma", "tcp/eth0"; empty: not known
};
Finding CheckTransfer(const TransferFacts& facts);

Finding CheckMeeting(const JoinProblem& problem);

/// Whether `node` saw what the first process wrote into the run directory, and could write there.
Finding CheckSharedDirectory(const std::string& node, const std::string& directory,
                             const std::string& error, bool writes_checkpoints);

}  // namespace troupe
