#include "cli/doctor/machine.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>
#include <utility>

#include "app/member.hpp"
#include "app/preflight.hpp"
#include "app/run_job.hpp"
#include "app/tensor_plane.hpp"
#include "app/version.hpp"
#include "cli/doctor/facts.hpp"
#include "cluster/descriptors.hpp"
#include "cluster/run_key.hpp"
#include "configs/loader.hpp"
#include "data/row_source.hpp"
#include "files/usable_cores.hpp"
#include "layout/at.hpp"
#include "layout/text.hpp"
#include "modules/device/backend.hpp"
#include "plan/job_plan.hpp"
#include "plan/memory.hpp"
#include "transport/ucx/plane.hpp"

namespace troupe {
namespace {

/// The bytes that a run writes to the disk.
DiskNeed DiskNeedOf(const JobPlan& plan, const std::vector<StageNeed>& stages) {
  DiskNeed disk;
  for (const StageNeed& stage : stages) {
    const auto tp = static_cast<std::uint64_t>(plan.GridOfStage(stage.stage).layout().tp);
    disk.weights += tp * stage.memory.parameters;
    disk.checkpoint += tp * (stage.memory.parameters + stage.memory.optimizer);
  }
  disk.kept = plan.config().checkpoint.keep;
  return disk;
}

/// Bytes of host memory for all ranks that would run here.
std::uint64_t MemoryHere(const std::map<int, std::size_t>& ranks, const MachinePart& part) {
  std::uint64_t memory = 0;
  for (const int rank : part.ranks()) {
    if (const auto need = ranks.find(rank); need != ranks.end()) memory += need->second;
  }
  return memory;
}

Findings CheckData(const Config& config) {
  Findings findings;
  std::shared_ptr<InputSource> source;
  try {
    source = OpenInputs(config);
  } catch (const DataError& e) {
    for (const std::string& line : e.lines()) findings.push_back(Fails("data", line, ""));
    findings.back().advice =
        "correct [data] or put the files there on this machine; `troupe data check` lists every "
        "fault, data.on_error = \"skip\" trains without bad rows";
    return findings;
  }
  const auto* rows = dynamic_cast<const RowSource*>(source.get());
  if (rows == nullptr) return {Well("data", "synthetic modules read none")};
  for (const std::string& line : rows->skipped_lines()) {
    findings.push_back(Warns("data", line, ""));
  }
  findings.push_back(
      Well("data", config.data.train_name() +
                       (config.data.held_out.empty() ? "" : ", " + config.data.held_out) +
                       ", tokenizer " + config.data.tokenizer));
  return findings;
}

Finding CheckRunDirectory(const Config& config, const DiskNeed& need) {
  try {
    return CheckDisk(config.run.dir, TryDirectory(config.run.dir), need);
  } catch (const std::runtime_error& e) {
    return Fails("disk", e.what(), "set run.dir to where you may write");
  }
}

Finding CheckThreads(int ranks) {
  try {
    CheckResources(ranks);
  } catch (const std::runtime_error& e) {
    return Fails("threads", e.what(), "raise that limit, or plan fewer ranks for this machine");
  }
  return Well("threads", "threads and address space for " + Counted(ranks, "rank"));
}

/// Something that only `troupe node` needs: a warning for a job of one node, which can run without.
Finding Missing(const MachinePart& part, std::string name, std::string line, std::string advice) {
  const bool needed = part.num_nodes > 1 || part.meets;
  return {std::move(name), needed ? Verdict::kFailure : Verdict::kWarning, std::move(line),
          std::move(advice)};
}

Finding CheckKey(const MachinePart& part) {
  if (part.key_inherited) return Well("key", "generated for these processes");
  const std::string& path = part.key_file;
  if (path.empty()) {
    return Missing(part, "key", "no run key given: a job of several processes needs one",
                   "make one with `troupe key FILE`, copy it to every node, then pass --key-file "
                   "FILE or set TROUPE_KEY_FILE");
  }
  try {
    static_cast<void>(RunKey::ReadFile(path));
  } catch (const std::runtime_error& e) {
    return Fails("key", e.what(),
                 "only you may read a key: make one with `troupe key FILE`, or chmod 600 a copy");
  }
  return Well("key", path);
}

/// No finding if there are no files and none are needed.
Findings CheckTls(const ClusterConfig& cluster, const std::optional<Address>& join) {
  const std::string files =
      cluster.tls_ca + ", " + cluster.tls_certificate + " and " + cluster.tls_key;
  try {
    if (join && TlsOf(cluster, *join, {})) {
      return {Well("tls", files + " fit together; connections are encrypted")};
    }
    if (cluster.tls_ca.empty()) return {};
    static_cast<void>(TlsContext({cluster.tls_ca, cluster.tls_certificate, cluster.tls_key}));
    return {Well("tls", files + " fit together" + (join ? "; this join address needs none" : ""))};
  } catch (const JoinError&) {
    return {};  // the check of names reports a name that does not resolve
  } catch (const std::runtime_error& e) {
    return {Fails("tls", e.what(), "correct cluster.tls, tls_ca, tls_certificate or tls_key")};
  }
}

/// Opens UCX as a job would, alone; nothing where the job does without it.
Findings CheckTransport(const Config& config, const MachinePart& part) {
  const int here = static_cast<int>(part.processes.size());
  const auto options = UcxOptionsHere(config.transport, here, here < part.num_processes);
  if (!options) return {Well("transport", "proven tcp, no port for tensors")};
  const std::string line = "UCX " + UcxVersion() + " over " + options->tls +
                           (options->net_devices.empty() ? "" : " on " + options->net_devices);
  try {
    UcxPlane plane(*options);
    plane.Close();
  } catch (const std::exception& e) {
    return {Fails("transport", line + ": " + e.what(),
                  "`ucx_info -d` lists what there is; see transport.ucx_tls and "
                  "transport.net_devices")};
  }
  return {Well("transport", line)};
}

/// The join port. No finding if another node has it, or the meeting tries it.
Findings CheckJoin(const MachinePart& part) {
  if (part.meets) return {};
  if (!part.join) {
    return {Missing(part, "ports", part.no_join,
                    "to check this machine alone: --set cluster.join=HOST:PORT (with --join the "
                    "nodes meet)")};
  }
  if (!part.first) return {};
  return {CheckJoinPort(ToString(*part.join), TryListening(part.join->host, part.join->port))};
}

/// The port of feed machines. No finding without one, or on another machine.
Findings CheckFeed(const DataConfig& data, const MachinePart& part) {
  if (data.feed_address.empty() || !part.first) return {};
  if (part.key_file.empty()) {
    return {Warns("key", "data.feed_address has no effect without a run key",
                  "make one with `troupe key FILE`, then pass --key-file FILE or set "
                  "TROUPE_KEY_FILE")};
  }
  const Address at = ParseAddress(data.feed_address);
  return {CheckFeedPort(data.feed_address, TryListening(at.host, at.port))};
}

/// The need of each GPU of this machine that ranks use. Empty if there are too few GPUs, which is
/// reported.
std::vector<GpuMemory> GpuMemoryHere(const Config& config, const std::vector<StageNeed>& stages,
                                     const MachinePart& part) {
  if (config.cluster.backend != Backend::kCuda) return {};
  const std::vector<GpuFacts> here = GpusHere();
  const std::map<int, std::size_t> needs = RankNeeds(stages);
  const std::map<int, std::size_t> savings = RankSavings(stages);
  std::map<int, GpuMemory> gpus;
  for (const int rank : part.ranks()) {
    const int number = GpuOf(config.cluster, rank);
    if (number >= std::ssize(here)) return {};
    const GpuFacts& facts = here[At(number)];
    GpuMemory& gpu = gpus[number];
    gpu.gpu = number;
    gpu.name = facts.name;
    gpu.all = facts.memory_bytes;
    gpu.ranks.push_back(rank);
    const auto need = needs.find(rank);
    if (need != needs.end()) gpu.need += need->second - savings.at(rank);
  }
  std::vector<GpuMemory> all;
  for (auto& [number, gpu] : gpus) all.push_back(std::move(gpu));
  return all;
}

/// Checks for backend "cuda", if this build can query GPUs and the machine has enough of them.
Findings VisibleGpus(const Config& config, const MachinePart& part, const Finding& devices) {
  const Backend backend = config.cluster.backend;
  if (backend != Backend::kCuda || devices.verdict == Verdict::kFailure ||
      !MissingFor(backend).empty()) {
    return {};
  }
  return CheckVisibleGpus(config.cluster, part.ranks(), static_cast<int>(GpusHere().size()));
}

/// Checks that only a job of several processes needs.
void CheckCluster(const Config& config, const MachinePart& part, Findings& findings) {
  std::vector<NodeFacts> nodes;
  for (const ClusterNode& node : config.cluster.nodes) nodes.push_back(LookUp(node));
  if (nodes.size() > 1) std::ranges::move(CheckNames(nodes, part.node), back_inserter(findings));
  const int here = static_cast<int>(part.processes.size());
  std::ranges::move(CheckJoin(part), back_inserter(findings));
  bool has_ports = true;
  if (const std::string& range = config.transport.port_range; !range.empty()) {
    findings.push_back(CheckPortRange(range, FreePorts(range, here), here));
    has_ports = findings.back().verdict != Verdict::kFailure;
  }
  findings.push_back(CheckKey(part));
  std::ranges::move(CheckTls(config.cluster, part.join), back_inserter(findings));
  const std::string& tls = config.transport.ucx_tls;
  if (here > 1 && (tls == "auto" || tls.find("posix") != std::string::npos)) {
    findings.push_back(CheckSharedMemory(FreeBytes("/dev/shm"), here));
  }
  if (here > 1 && (tls == "auto" || tls.find("cma") != std::string::npos)) {
    findings.push_back(CheckCma(PtraceScope(), TryReadingProcess(), MayTrace()));
  }
  // Without a free port UCX could not be opened; the finding about ports reports that.
  if (!part.meets && has_ports) {
    std::ranges::move(CheckTransport(config, part), back_inserter(findings));
  }
}

}  // namespace

std::vector<int> MachinePart::ranks() const {
  std::vector<int> all;
  for (const PlannedProcess& process : processes) {
    all.insert(all.end(), process.ranks.begin(), process.ranks.end());
  }
  return all;
}

Findings CheckMachine(const Config& config, const MachinePart& part) {
  const JobPlan plan(config);
  const ProcessPlan processes(config.cluster);
  const std::vector<StageNeed> stages = StageNeeds(plan, processes);
  const int ranks = part.num_ranks();
  Findings findings;
  findings.push_back(Well("versions", VersionText() + ", UCX " + UcxVersion()));
  for (const ConfigError& remark : Remarks(config, {})) {
    findings.push_back(Warns("config", remark.text, "it does no harm; leave it out"));
  }
  std::ranges::move(CheckData(config), back_inserter(findings));
  // If the nodes meet, the first makes the run directory and the others look for it.
  if (part.first || !part.meets)
    findings.push_back(CheckRunDirectory(config, DiskNeedOf(plan, stages)));
  findings.push_back(CheckMemory(MemoryHere(HostNeeds(plan, processes, stages), part),
                                 static_cast<int>(part.processes.size()), ReadMemory()));
  findings.push_back(CheckCores(ranks, UsableCores()));
  findings.push_back(CheckThreads(ranks));
  findings.push_back(CheckDescriptors(DescriptorLimit(), part.num_processes));
  findings.push_back(CheckClock(ReadClock()));
  findings.push_back(CheckDevices(NvidiaDevices(), config.cluster.backend,
                                  GpusNeeded(config.cluster), MissingFor(config.cluster.backend)));
  std::ranges::move(VisibleGpus(config, part, Finding(findings.back())), back_inserter(findings));
  std::ranges::move(CheckGpuMemory(GpuMemoryHere(config, stages, part)), back_inserter(findings));
  if (part.num_processes > 1) {
    CheckCluster(config, part, findings);
  } else {
    findings.push_back(
        Well("cluster", config.data.feed_address.empty()
                            ? "one process: no ports, no key and no transport needed"
                            : "one process: no transport needed, a run key for feed machines"));
  }
  std::ranges::move(CheckFeed(config.data, part), back_inserter(findings));
  return findings;
}

}  // namespace troupe
