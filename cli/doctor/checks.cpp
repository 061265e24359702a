#include "cli/doctor/checks.hpp"

#include <algorithm>
#include <utility>

#include "cluster/address_class.hpp"
#include "layout/ranks_text.hpp"
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

Finding CheckOwnName(const NodeFacts& node) {
  return Fails("names",
               node.name + " is " + AddressText(node) + ", which is not an address of this machine",
               "pass the --node of this machine, or correct cluster.nodes");
}

/// Whether a name resolves to loopback, as the machine's own name does with "127.0.1.1" in
/// /etc/hosts: other machines cannot reach that.
bool HidesBehindLoopback(const NodeFacts& node, const std::vector<NodeFacts>& nodes) {
  if (!IsLoopback(node.resolved)) return false;
  return std::ranges::any_of(nodes, [](const NodeFacts& other) {
    return !other.resolved.empty() && !IsLoopback(other.resolved);
  });
}

}  // namespace

Finding CheckDisk(const std::string& directory, std::uint64_t free, const DiskNeed& need) {
  const std::uint64_t bytes =
      need.weights + static_cast<std::uint64_t>(need.kept) * need.checkpoint;
  const std::string needs =
      "weights and " + std::to_string(need.kept) + " checkpoints take " + Bytes(bytes);
  if (free < bytes) {
    return Fails("disk", directory + " has " + Bytes(free) + " free, " + needs,
                 "make room, set run.dir to another disk or checkpoint.keep to fewer");
  }
  return Well("disk", directory + " has " + Bytes(free) + " free, " + needs);
}

Finding CheckMemory(std::uint64_t estimate, int processes, const MemoryFacts& facts) {
  const std::uint64_t need = estimate + static_cast<std::uint64_t>(processes) * kProcessBytes;
  const bool grouped = facts.group_left && *facts.group_left < facts.available;
  const std::uint64_t left = grouped ? *facts.group_left : facts.available;
  const std::string line = "about " + Bytes(need) + " needed here, " + Bytes(left) +
                           (grouped ? " left to the control group's limit" : " available");
  const std::string advice = grouped ? "give the job a higher memory limit, or more nodes"
                                     : "end other programs, or plan fewer ranks for this machine";
  if (need > left) return Fails("memory", line, advice);
  if (need > left / 10 * 9) return Warns("memory", line, advice);
  return Well("memory", line);
}

Finding CheckCores(int ranks, int cores) {
  const std::string line = RanksOnCores(ranks, cores);
  if (ranks <= cores) return Well("cores", line);
  return Warns("cores", line, "it works, ranks that share a core take turns on it");
}

Finding CheckDescriptors(std::uint64_t limit, int processes) {
  const std::uint64_t need =
      kOwnDescriptors + kDescriptorsPerPeer * static_cast<std::uint64_t>(processes - 1);
  const std::string line =
      std::to_string(limit) + " open files allowed, about " + std::to_string(need) + " needed";
  if (limit >= need) return Well("files", line);
  return Fails("files", line, "raise the limit: ulimit -n " + std::to_string(2 * need));
}

Finding CheckSharedMemory(std::optional<std::uint64_t> free, int processes) {
  const std::uint64_t need = kWorkerBytes * static_cast<std::uint64_t>(processes);
  const std::string advice =
      "enlarge /dev/shm (a container: --shm-size) or set transport.ucx_tls "
      "to \"none\"";
  if (!free) return Fails("shm", "there is no /dev/shm", advice);
  const std::string line = "/dev/shm has " + Bytes(*free) + " free, UCX takes " + Bytes(need);
  return *free < need ? Fails("shm", line, advice) : Well("shm", line);
}

Finding CheckCma(std::optional<int> ptrace_scope, const std::string& error, bool privileged) {
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
                                   " to DNS or /etc/hosts, or write the IP "
                                   "address into cluster.nodes"));
    } else if (self == static_cast<int>(i) && !node.here()) {
      findings.push_back(CheckOwnName(node));
    } else if (HidesBehindLoopback(node, nodes)) {
      findings.push_back(Fails(
          "names", node.name + " is " + AddressText(node) + " here: other machines cannot reach it",
          "give it its network address in /etc/hosts or in cluster.nodes"));
    } else {
      known += (known.empty() ? "" : ", ") + node.name + " is " + node.resolved;
      if (node.here()) known += " (here, " + node.interface;
      if (node.here() && node.mtu > 0) known += ", MTU " + std::to_string(node.mtu);
      if (node.here()) known += ")";
    }
  }
  if (num_without > 0) {
    known +=
        (known.empty() ? "" : "; ") + std::to_string(num_without) +
        (num_without == 1 ? " node without" : " nodes without") +
        " an address in cluster.nodes: --join, cluster.join or the launcher gives that of node "
        "0";
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

Finding CheckPortRange(const std::string& range, int free, int needed) {
  const std::string line = "transport.port_range " + range + ": " + std::to_string(free) +
                           " free, " + std::to_string(needed) + " needed";
  if (free >= needed) return Well("ports", line);
  return Fails("ports", line,
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
  if (share(*fullest) > 1.0) return {Fails("gpu", line, advice)};
  if (share(*fullest) > 0.9) return {Warns("gpu", line, advice)};
  return {Well("gpu", line)};
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
  if (static_cast<int>(devices.size()) >= needed) return Well("gpu", line);
  return Fails("gpu", line + "; the ranks of a node need " + std::to_string(needed),
               "let more ranks share one with cluster.ranks_per_gpu, or use fewer");
}

}  // namespace troupe
