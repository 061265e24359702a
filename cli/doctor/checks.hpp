// Findings of `troupe doctor`, and the checks that judge facts. The checks are pure, so that tests
// can produce every verdict on any machine. facts.hpp reads the facts, machine.hpp combines them.
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
  kWarning,  ///< the job would run, but slower or less reliably
  kFailure   ///< the job would fail
};

struct Finding {
  std::string name;  ///< the subject: "ports"
  Verdict verdict = Verdict::kOk;
  std::string line;    ///< one line
  std::string advice;  ///< one line with the next step; empty if `line` has it or all is well
};
using Findings = std::vector<Finding>;

Finding Well(std::string name, std::string line);
Finding Warns(std::string name, std::string line, std::string advice);
Finding Fails(std::string name, std::string line, std::string advice);

bool AnyFailure(const Findings& findings);
/// One aligned line per finding, warnings after the rest and failures last, each with its advice
/// below; then a line that counts them.
std::string FindingsTable(Findings findings);

/// Bytes that a run writes on one machine: weights, and the checkpoints that are kept.
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
/// `estimate`: bytes of all ranks here, without those that the `processes` need themselves.
Finding CheckMemory(std::uint64_t estimate, int processes, const MemoryFacts& facts);

Finding CheckCores(int ranks, int cores);
/// `limit`: open files that a process may have; `processes`: of the whole job.
Finding CheckDescriptors(std::uint64_t limit, int processes);

/// `free`: bytes free in /dev/shm, nothing if there is none. `processes`: of this machine.
Finding CheckSharedMemory(std::optional<std::uint64_t> free, int processes);
/// `ptrace_scope`: kernel.yama.ptrace_scope, nothing if the kernel has no Yama. `error`: the
/// kernel's error on reading a process's memory, empty if it allows it. `privileged`: may trace
/// with any scope.
Finding CheckCma(std::optional<std::uint64_t> ptrace_scope, const std::string& error,
                 bool privileged);

struct ClockFacts {
  bool synchronised = false;
  std::string error;  ///< why the state is not known; else empty
};
Finding CheckClock(const ClockFacts& facts);

/// A node's address as this machine resolves it.
struct NodeFacts {
  std::string name;
  std::string address;    ///< as configured; empty: the launcher knows
  std::string resolved;   ///< the first address in digits; empty when it does not resolve
  std::string error;      ///< then the resolver's error
  std::string interface;  ///< the interface here that has the address; empty: another machine's
  int mtu = 0;            ///< of that interface; 0 = not known
  bool here() const { return !interface.empty(); }
};
/// `self`: index of this machine's node, nothing if it is not known.
Findings CheckNames(const std::vector<NodeFacts>& nodes, std::optional<int> self);

/// `error`: why process 0 could not listen there, empty if it could.
Finding CheckJoinPort(const std::string& address, const std::string& error);
/// The same for data.feed_address.
Finding CheckFeedPort(const std::string& address, const std::string& error);
/// `free`: free ports of `range`. `needed`: one per process.
Finding CheckPortRange(const std::string& range, int free, int needed);

/// The estimated need of the ranks on a GPU, and its memory.
struct GpuMemory {
  int gpu = 0;
  std::string name;
  std::vector<int> ranks;
  std::uint64_t need = 0;
  std::uint64_t all = 0;
};
/// Judges the fullest GPU, in proportion. No finding without GPUs.
Findings CheckGpuMemory(const std::vector<GpuMemory>& gpus);

/// `devices`: names of the NVIDIA devices. `needed`: GPUs on this machine for backend "cuda".
/// `missing`: the parts that the build lacks for it, or "".
Finding CheckDevices(const std::vector<std::string>& devices, Backend backend, int needed,
                     const std::string& missing);
/// The driver may show this process only `found` GPUs, fewer than the machine has. No finding if
/// they suffice for `ranks`.
Findings CheckVisibleGpus(const ClusterConfig& cluster, const std::vector<int>& ranks, int found);

/// The path between the first process and one other.
struct PathFacts {
  std::string node;
  double round_trip_s = 0.0;       ///< the median
  double best_round_trip_s = 0.0;  ///< the clocks' difference is known to half of it
  double clock_ahead_s = 0.0;      ///< the other's wall clock before the first's
  int mtu_there = 0;               ///< of the path to it, as each end reports it; 0 = not known
  int mtu_back = 0;
};
/// `suspect_after_s`: time without heartbeats after which a process is suspected.
Finding CheckPath(const PathFacts& facts, double suspect_after_s);
Finding CheckClockDifference(const PathFacts& facts);

struct TransferFacts {
  std::string node;
  std::uint64_t bytes = 0;
  double there_s = 0.0;
  double back_s = 0.0;
  bool intact = true;     ///< the received bytes equal the sent ones
  std::string transport;  ///< "sysv + cma", "tcp/eth0"; empty: not known
};
Finding CheckTransfer(const TransferFacts& facts);

Finding CheckMeeting(const JoinProblem& problem);

/// Whether `node` saw the first process's file in the run directory, and could write there.
Finding CheckSharedDirectory(const std::string& node, const std::string& directory,
                             const std::string& error);

}  // namespace troupe
