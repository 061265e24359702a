#include "cli/doctor/checks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "cluster/address_class.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

/// Libraries, stacks and heaps of one process before it holds a single parameter.
constexpr std::uint64_t kProcessBytes = std::uint64_t{256} << 20;
/// Bytes of /dev/shm that UCX takes for a worker.
constexpr std::uint64_t kWorkerBytes = 4'300'000;
/// Control, heartbeat and tensor connections to one other process; and files that every process
/// opens.
constexpr std::uint64_t kDescriptorsPerPeer = 5;
constexpr std::uint64_t kOwnDescriptors = 64;

std::string AddressText(const NodeFacts& node) {
  return node.address == node.resolved ? node.address : node.address + " = " + node.resolved;
}

Finding FailsIf(bool failure, std::string name, std::string line, std::string advice) {
  return failure ? Fails(std::move(name), std::move(line), std::move(advice))
                 : Well(std::move(name), std::move(line));
}

/// Whether a name resolves to loopback, as the machine's own name does with "127.0.1.1" in
/// /etc/hosts: other machines cannot reach that.
bool HidesBehindLoopback(const NodeFacts& node, const std::vector<NodeFacts>& nodes) {
  if (!IsLoopback(node.resolved)) return false;
  return std::ranges::any_of(nodes, [](const NodeFacts& other) {
    return !other.resolved.empty() && !IsLoopback(other.resolved);
  });
}

/// Half of one gigabit: below, moving tensors takes longer than computing them.
constexpr double kSlowBytesPerSecond = 60e6;
constexpr double kClocksApartSeconds = 1.0;

/// A problem that names both sides and their difference needs no advice.
std::string AdviceOn(JoinFault fault) {
  switch (fault) {
    case JoinFault::kOther:
    case JoinFault::kLeft:
    case JoinFault::kEnded:
    case JoinFault::kDone:
    case JoinFault::kTaken:
    case JoinFault::kWrongFirst:
      return "";
    case JoinFault::kRunKey:
      return "give every node a copy of the same key file, and every job a separate port";
    case JoinFault::kBuild:
      return "the same verb of the same build must run on every node";
    case JoinFault::kListen:
      return "end the program that listens there, or choose an address of this machine and a free "
             "port: --join for node 0, --address for the others";
    case JoinFault::kAbsent:
      return "run the same command on every node within cluster.join_timeout_s, each with its own "
             "--node";
    case JoinFault::kUnreachable:
      return "run the same command there at the same time; is that an address of its machine "
             "(--join, --address), and does a firewall let it pass?";
    case JoinFault::kUnreached:
      return "is its address one that the others can reach (--address), and does a firewall let "
             "them pass?";
  }
  return "";
}

std::string DurationText(double seconds) {
  return Duration(static_cast<std::int64_t>(seconds * 1e9));
}

std::string RateText(std::uint64_t bytes, double seconds) {
  const double rate = static_cast<double>(bytes) / std::max(seconds, 1e-9);
  return rate < 1e9 ? Formatted("%.0f MB/s", rate / 1e6) : Formatted("%.1f GB/s", rate / 1e9);
}

/// Whether bytes stay on this machine: shared memory, or TCP over loopback.
bool StaysHere(const std::string& transport) {
  return std::ranges::any_of(std::array{"sysv", "posix", "cma", "tcp/lo"}, [&](const char* local) {
    return transport.find(local) != std::string::npos;
  });
}

std::string SlowAdvice(const std::string& transport) {
  if (StaysHere(transport)) {
    return "slow for " + transport +
           ", which stays on this machine: its processors or its memory are busy with other "
           "programs";
  }
  return "less than half of a 1 Gbit/s link: is " + (transport.empty() ? "it" : transport) +
         " the right interface (transport.net_devices, cluster.nodes), and is it free of other "
         "traffic?";
}

/// In the order of Verdict.
constexpr std::array kVerdictWords = {"ok", "warning", "failure"};

std::string Padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

}  // namespace

Finding CheckDisk(const std::string& directory, std::uint64_t free, const DiskNeed& need) {
  const std::uint64_t bytes =
      need.weights + static_cast<std::uint64_t>(need.kept) * need.checkpoint;
  return FailsIf(free < bytes, "disk",
                 directory + " has " + Bytes(free) + " free, weights and " +
                     std::to_string(need.kept) + " checkpoints take " + Bytes(bytes),
                 "make room, set run.dir to another disk or checkpoint.keep to fewer");
}

Finding CheckMemory(std::uint64_t estimate, int processes, const MemoryFacts& facts) {
  const std::uint64_t need = estimate + static_cast<std::uint64_t>(processes) * kProcessBytes;
  const bool grouped = facts.group_left && *facts.group_left < facts.available;
  const std::uint64_t left = grouped ? *facts.group_left : facts.available;
  const std::string line = "about " + Bytes(need) + " needed here, " + Bytes(left) +
                           (grouped ? " left to the control group's limit" : " available");
  const std::string advice = grouped ? "give the job a higher memory limit, or more nodes"
                                     : "end other programs, or plan fewer ranks for this machine";
  if (need > left / 10 * 9 && need <= left) return Warns("memory", line, advice);
  return FailsIf(need > left, "memory", line, advice);
}

Finding CheckCores(int ranks, int cores) {
  const std::string line = RanksOnCores(ranks, cores);
  if (ranks <= cores) return Well("cores", line);
  return Warns("cores", line, "it works, ranks that share a core take turns on it");
}

Finding CheckDescriptors(std::uint64_t limit, int processes) {
  const std::uint64_t need =
      kOwnDescriptors + kDescriptorsPerPeer * static_cast<std::uint64_t>(processes - 1);
  return FailsIf(
      limit < need, "files",
      std::to_string(limit) + " open files allowed, about " + std::to_string(need) + " needed",
      "raise the limit: ulimit -n " + std::to_string(2 * need));
}

Finding CheckSharedMemory(std::optional<std::uint64_t> free, int processes) {
  const std::uint64_t need = kWorkerBytes * static_cast<std::uint64_t>(processes);
  const std::string advice =
      "enlarge /dev/shm (a container: --shm-size) or set transport.ucx_tls to \"none\"";
  if (!free) return Fails("shm", "there is no /dev/shm", advice);
  return FailsIf(*free < need, "shm",
                 "/dev/shm has " + Bytes(*free) + " free, UCX takes " + Bytes(need), advice);
}

Finding CheckCma(std::optional<std::uint64_t> ptrace_scope, const std::string& error,
                 bool privileged) {
  const std::string slower = "it works, with one copy more; ";
  if (!error.empty()) {
    return Warns("cma", "the kernel does not let processes read each other's memory: " + error,
                 slower + "allow process_vm_readv (a container: its seccomp profile)");
  }
  if (!ptrace_scope) return Well("cma", "no Yama in this kernel: processes may read each other");
  const std::string line = "kernel.yama.ptrace_scope = " + std::to_string(*ptrace_scope);
  if (*ptrace_scope < 2 || (*ptrace_scope == 2 && privileged)) return Well("cma", line);
  return Warns("cma", line + ": processes may not read each other's memory",
               slower + "sysctl kernel.yama.ptrace_scope=1 allows it");
}

Finding CheckClock(const ClockFacts& facts) {
  if (!facts.error.empty()) {
    return Warns("clock", "the kernel does not report whether it is synchronised: " + facts.error,
                 "check with timedatectl; logs and traces of several machines need it");
  }
  if (facts.synchronised) return Well("clock", "synchronised");
  return Warns("clock", "the kernel reports it as not synchronised",
               "start chrony or systemd-timesyncd: times in logs of several machines need it");
}

Findings CheckNames(const std::vector<NodeFacts>& nodes, std::optional<int> self) {
  Findings findings;
  std::string known;
  int num_without = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeFacts& node = nodes[i];
    if (node.address.empty()) {
      ++num_without;
    } else if (node.resolved.empty()) {
      findings.push_back(Fails("names", node.name + ": " + node.error,
                               "add " + node.address +
                                   " to DNS or /etc/hosts, or write the IP address into "
                                   "cluster.nodes"));
    } else if (self == static_cast<int>(i) && !node.here()) {
      findings.push_back(Fails(
          "names",
          node.name + " is " + AddressText(node) + ", which is not an address of this machine",
          "pass the --node of this machine, or correct cluster.nodes"));
    } else if (HidesBehindLoopback(node, nodes)) {
      findings.push_back(Fails(
          "names", node.name + " is " + AddressText(node) + " here: other machines cannot reach it",
          "give it its network address in /etc/hosts or in cluster.nodes"));
    } else {
      known += (known.empty() ? "" : ", ") + node.name + " is " + node.resolved;
      if (!node.here()) continue;
      const std::string mtu = node.mtu > 0 ? ", MTU " + std::to_string(node.mtu) : "";
      known += " (here, " + node.interface + mtu + ")";
    }
  }
  if (num_without > 0) {
    known +=
        (known.empty() ? "" : "; ") + Counted(num_without, "node") +
        " without an address in cluster.nodes: --join, cluster.join or the launcher gives that of "
        "node 0";
  }
  if (!known.empty()) findings.push_back(Well("names", known));
  return findings;
}

Finding CheckJoinPort(const std::string& address, const std::string& error) {
  if (error.empty()) return Well("ports", address + " is free");
  return Fails("ports", error,
               "end the program that listens there, or choose another port with --join or "
               "cluster.join");
}

Finding CheckFeedPort(const std::string& address, const std::string& error) {
  if (error.empty()) return Well("ports", address + " is free for feed machines");
  return Fails("ports", error,
               "data.feed_address must be an address of this machine, with a port where no other "
               "program listens");
}

Finding CheckPortRange(const std::string& range, int free, int needed) {
  return FailsIf(free < needed, "ports",
                 "transport.port_range " + range + ": " + std::to_string(free) + " free, " +
                     std::to_string(needed) + " needed",
                 "choose a wider transport.port_range, or end programs that listen there");
}

Findings CheckGpuMemory(const std::vector<GpuMemory>& gpus) {
  const auto share = [](const GpuMemory& gpu) {
    return static_cast<double>(gpu.need) / static_cast<double>(std::max<std::uint64_t>(gpu.all, 1));
  };
  const auto fullest = std::ranges::max_element(gpus, {}, share);
  if (fullest == gpus.end()) return {};
  const std::string line =
      "GPU " + std::to_string(fullest->gpu) + ": about " + Bytes(fullest->need) + " needed by " +
      (fullest->ranks.size() == 1 ? "rank " : "ranks ") + RanksText(fullest->ranks) + ", " +
      fullest->name + " has " + Bytes(fullest->all);
  const std::string advice =
      "lower schedule.micro_batch_size, set recompute, offload or precision = \"bfloat16\", or "
      "spread the model over more GPUs";
  if (share(*fullest) > 0.9 && share(*fullest) <= 1.0) return {Warns("gpu", line, advice)};
  return {FailsIf(share(*fullest) > 1.0, "gpu", line, advice)};
}

Findings CheckVisibleGpus(const ClusterConfig& cluster, const std::vector<int>& ranks, int found) {
  if (cluster.backend != Backend::kCuda) return {};
  const std::string missing = MissingGpus(cluster, ranks, found);
  if (missing.empty()) return {};
  return {Fails("gpu", "as CUDA counts them: " + missing,
                "check whether CUDA_VISIBLE_DEVICES hides some, and whether the driver is new "
                "enough (docs/errors.md, GPUs)")};
}

Finding CheckDevices(const std::vector<std::string>& devices, Backend backend, int needed,
                     const std::string& missing) {
  const std::string line = devices.empty()
                               ? "no NVIDIA device"
                               : std::to_string(devices.size()) + " NVIDIA: " + Listed(devices);
  if (backend != Backend::kCuda) {
    return Well("gpu", line + "; backend " + ToString(backend) +
                           (devices.empty() ? " needs" : " uses") + " none");
  }
  if (!missing.empty()) return Fails("gpu", missing, "rebuild as docs/gpu.md describes");
  if (std::ssize(devices) >= needed) return Well("gpu", line);
  return Fails("gpu", line + "; the ranks of a node need " + std::to_string(needed),
               "let more ranks share one with cluster.ranks_per_gpu, or use fewer");
}

Finding Well(std::string name, std::string line) {
  return {std::move(name), Verdict::kOk, std::move(line), ""};
}
Finding Warns(std::string name, std::string line, std::string advice) {
  return {std::move(name), Verdict::kWarning, std::move(line), std::move(advice)};
}
Finding Fails(std::string name, std::string line, std::string advice) {
  return {std::move(name), Verdict::kFailure, std::move(line), std::move(advice)};
}

bool AnyFailure(const Findings& findings) {
  return std::ranges::any_of(
      findings, [](const Finding& finding) { return finding.verdict == Verdict::kFailure; });
}

std::string FindingsTable(Findings findings) {
  std::ranges::stable_sort(findings, {}, &Finding::verdict);
  std::size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.name.size());
  std::string text;
  for (const Finding& finding : findings) {
    const std::string head =
        Padded(kVerdictWords.at(static_cast<std::size_t>(finding.verdict)), 9) +
        Padded(finding.name, width + 2);
    text += head + finding.line + "\n";
    if (finding.advice.empty()) continue;
    text += std::string(head.size(), ' ') + "-> " + finding.advice + "\n";
  }
  const auto count = [&](Verdict verdict) {
    return std::ranges::count(findings, verdict, &Finding::verdict);
  };
  const auto failures = count(Verdict::kFailure);
  return text + (failures == 0 ? "nothing found that would fail" : "the job would fail") + ": " +
         std::to_string(count(Verdict::kOk)) + " ok, " +
         Counted(count(Verdict::kWarning), "warning") + ", " + Counted(failures, "failure") + "\n";
}

Finding CheckPath(const PathFacts& facts, double suspect_after_s) {
  std::string line = facts.node + " answers within " + DurationText(facts.round_trip_s);
  if (facts.mtu_there > 0) line += ", MTU " + std::to_string(facts.mtu_there);
  if (facts.round_trip_s > suspect_after_s) {
    return Fails("path", line, "the network is slower than cluster.suspect_after_s allows");
  }
  if (facts.round_trip_s > suspect_after_s / 4) {
    return Warns("path", line,
                 "raise cluster.suspect_after_s: a busy moment would look like a loss");
  }
  if (facts.mtu_there > 0 && facts.mtu_back > 0 && facts.mtu_there != facts.mtu_back) {
    return Warns("path", line + " there and " + std::to_string(facts.mtu_back) + " back",
                 "give both ends and the switches between the same MTU: large packets may be lost");
  }
  return Well("path", line);
}

Finding CheckClockDifference(const PathFacts& facts) {
  const std::string sure = ", known to " + DurationText(facts.best_round_trip_s / 2);
  const std::string line = facts.node + "'s clock is " +
                           DurationText(std::abs(facts.clock_ahead_s)) +
                           (facts.clock_ahead_s < 0 ? " behind" : " ahead") + sure;
  if (std::abs(facts.clock_ahead_s) < kClocksApartSeconds) return Well("clocks", line);
  return Warns("clocks", line,
               "synchronise the clocks: times in logs and names of runs would not fit");
}

Finding CheckTransfer(const TransferFacts& facts) {
  const std::string what = Bytes(facts.bytes);
  if (!facts.intact) {
    return Fails("tensors", what + " between here and " + facts.node + " arrived changed",
                 "the network or a machine's memory is faulty; transport.verify = \"payload\" "
                 "notices it in a job");
  }
  const std::string line = what + " to " + facts.node + " in " + DurationText(facts.there_s) +
                           " (" + RateText(facts.bytes, facts.there_s) + "), back in " +
                           DurationText(facts.back_s) + " (" + RateText(facts.bytes, facts.back_s) +
                           ")";
  const double slowest = std::max(facts.there_s, facts.back_s);
  if (static_cast<double>(facts.bytes) / std::max(slowest, 1e-9) >= kSlowBytesPerSecond) {
    return Well("tensors", line);
  }
  return Warns("tensors", line, SlowAdvice(facts.transport));
}

Finding CheckMeeting(const JoinProblem& problem) {
  return Fails("meeting", problem.text, AdviceOn(problem.fault));
}

Finding CheckSharedDirectory(const std::string& node, const std::string& directory,
                             const std::string& error) {
  if (error.empty()) return Well("shared", node + " reads and writes the same " + directory);
  const std::string line = node + " does not share " + directory + ": " + error;
  return Warns(
      "shared", line,
      "each node keeps its part of checkpoints on its own disk, which a resumed run needs; "
      "put run.dir on a file system that all nodes mount to have them in one place");
}

}  // namespace troupe
