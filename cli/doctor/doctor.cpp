#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "app/cluster_run.hpp"
#include "app/handed_config.hpp"
#include "app/launcher.hpp"
#include "app/member.hpp"
#include "app/version.hpp"
#include "cli/commands.hpp"
#include "cli/doctor/checks.hpp"
#include "cli/doctor/facts.hpp"
#include "cli/doctor/machine.hpp"
#include "cli/doctor/meeting.hpp"
#include "cluster/environment.hpp"
#include "cluster/join_address.hpp"
#include "cluster/text.hpp"
#include "cluster/variables.hpp"
#include "configs/config.hpp"
#include "configs/loader.hpp"
#include "configs/report.hpp"
#include "plan/job_plan.hpp"
#include "plan/process_plan.hpp"

namespace troupe {
namespace {

struct DoctorArguments {
  ConfigArguments config;
  MemberArguments member;
  int local = 0;  ///< processes to start here
};

struct NodeHere {
  std::optional<int> node;  ///< nothing if neither given nor guessed
  Findings findings;        ///< empty if a source gave it
};

/// The first node whose address is one of this machine's.
std::optional<int> NodeByAddress(const ClusterConfig& cluster) {
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    const std::string& address = cluster.nodes[i].address;
    if (!address.empty() && IsHere(address)) return static_cast<int>(i);
  }
  return std::nullopt;
}

Finding Guessed(std::optional<int> node, const ProcessPlan& plan, const ClusterConfig& cluster) {
  const std::string how = node
                              ? "; guessed " + cluster.nodes[static_cast<std::size_t>(*node)].name +
                                    ", whose address in cluster.nodes is this machine's"
                              : "; checked as the one with most ranks";
  return Warns("node", "not known which of " + plan.Names() + " this is" + how,
               "`troupe node` does not guess: pass --node I/N, unless a launcher sets it");
}

/// Chooses the part of a job to check here, by the same sources as `troupe node`, or by a guess,
/// which it reports. Throws LaunchError if ChooseNode() refuses `node_argument`, the value of
/// --node. Launcher variables that ChooseNode() refuses are a failure; a missing source is a
/// warning, since the launcher may set it when the job starts.
NodeHere FindNode(const Variables& variables, const std::optional<std::string>& node_argument,
                  const ProcessPlan& plan, const ClusterConfig& cluster) {
  if (plan.num_nodes() == 1 && !node_argument) return {0, {}};
  try {
    const NodeChoice choice = ChooseNode(variables, node_argument, plan);
    if (choice.launched_per == LaunchedPer::kNode) return {choice.node, {}};
    return {plan.Of(choice.node).node, {}};
  } catch (const NoNodeSource&) {
    const std::optional<int> node = NodeByAddress(cluster);
    return {node, {Guessed(node, plan, cluster)}};
  } catch (const LaunchError& e) {
    if (node_argument) throw;
    return {NodeByAddress(cluster), {Fails("node", e.what(), "")}};
  }
}

/// Returns the part of `node`, or of the node with most ranks if it is not known.
MachinePart PartOfNode(const ProcessPlan& plan, std::optional<int> node) {
  MachinePart part;
  part.num_processes = plan.num_processes();
  part.num_nodes = plan.num_nodes();
  part.node = node;
  part.processes = plan.OfNode(node.value_or(0));
  // An unknown node: take the one with most ranks, which needs most.
  for (int other = 0; !node && other < plan.num_nodes(); ++other) {
    MachinePart candidate;
    candidate.processes = plan.OfNode(other);
    if (candidate.num_ranks() > part.num_ranks()) part.processes = candidate.processes;
  }
  part.first = node == 0;
  return part;
}

/// "8 ranks in 2 processes (n0, n1); here: 4 ranks, in n0".
std::string RanksText(const MachinePart& part, const ProcessPlan& plan) {
  const std::string ranks = Counted(plan.num_ranks(), "rank") + " in ";
  if (part.num_processes == 1) return ranks + "one process";
  const std::string all =
      ranks + std::to_string(part.num_processes) + " processes (" + plan.Names() + ")";
  if (static_cast<int>(part.processes.size()) == part.num_processes) return all + ", all here";
  std::vector<std::string> names;
  for (const PlannedProcess& process : part.processes) names.push_back(process.name);
  return all + "; here: " + Counted(part.num_ranks(), "rank") + ", in " + Enumerate(names);
}

/// A doctor joins only other doctors: the join refuses a process that trains, by name.
std::string DoctorBuild() { return "doctor of " + VersionText(); }

int Print(const Findings& findings) {
  std::cout << FindingsTable(findings) << std::flush;
  return AnyFailure(findings) ? kExitNotMet : kExitDone;
}

int DoctorThisMachine(const DoctorArguments& arguments, const Config& config,
                      const Variables& variables) {
  const ProcessPlan plan(config.cluster);
  NodeHere here = FindNode(variables, arguments.member.node, plan, config.cluster);
  MachinePart part = PartOfNode(plan, here.node);
  part.key_file = arguments.member.key_file;
  if (plan.num_processes() > 1) {
    try {
      part.join = ChooseJoin(variables, arguments.member.join, config.cluster).address;
      part.first = part.first || (!part.node && IsHere(part.join->host));
    } catch (const LaunchError& e) {
      part.no_join = e.what();
    }
  }
  Findings findings = {Well("config", arguments.config.path + ": " + RanksText(part, plan))};
  std::ranges::move(here.findings, std::back_inserter(findings));
  std::ranges::move(CheckMachine(config, part), std::back_inserter(findings));
  return Print(findings);
}

/// Starts one doctor for each process, as `train` would.
int StartAll(const std::string& path, const std::string& resolved_toml, const ProcessPlan& plan,
             const std::vector<PlannedProcess>& mine, MemberArguments member) {
  const Descriptor config = HandedConfig(resolved_toml);
  member.config_descriptor = config.get();
  std::vector<ChildProcess> children;
  for (const PlannedProcess& process : mine) {
    children.push_back(ChildOf("doctor", path, member, plan, process));
  }
  Interrupt interrupt;
  const int exit_code = RunChildren(children, interrupt);
  return interrupt.signal() != 0 ? ExitCodeOfSignal(interrupt.signal()) : exit_code;
}

int DoctorLocal(const DoctorArguments& arguments, const LoadedConfig& loaded,
                const ProcessPlan& plan) {
  const Descriptor key = NewKey();
  return StartAll(arguments.config.path, loaded.resolved_toml, plan, plan.processes(),
                  LocalMember(key, arguments.local));
}

/// Returns the findings about this machine in the first process of each node, none in the others.
Findings OwnFindings(const DoctorArguments& arguments, const Config& config,
                     const ProcessPlan& plan, ProcessId self, const Address& seed) {
  const int node = plan.Of(self).node;
  MachinePart part = PartOfNode(plan, node);
  const bool local = arguments.member.local_processes > 0;
  if (local) part.processes = plan.processes();
  if (part.processes.front().process != self) return {};
  part.meets = true;
  part.join = seed;
  part.key_file = arguments.member.key_file;
  part.key_inherited = arguments.member.key_descriptor >= 0;
  Findings findings;
  if (self == 0) {
    findings.push_back(Well("config", arguments.config.path + ": " + RanksText(part, plan)));
  }
  Config seen = config;
  if (local) seen.cluster.nodes.clear();  // all processes are on this machine
  std::ranges::move(CheckMachine(local ? seen : config, part), std::back_inserter(findings));
  return findings;
}

int DoctorAsMember(const DoctorArguments& arguments, const Config& config, const ProcessPlan& plan,
                   ProcessId self, const Address& seed) {
  Findings own = OwnFindings(arguments, config, plan, self, seed);
  std::optional<RunKey> key;
  try {
    key = ReadKey(arguments.member);
  } catch (const std::runtime_error&) {
    own.push_back(Fails("meeting", "not tried without a run key that can be read", ""));
    return Print(own);
  }
  std::unique_ptr<TlsContext> tls;
  try {
    tls = TlsOf(config.cluster, seed, {});
  } catch (const std::runtime_error& e) {
    own.push_back(Fails("meeting", std::string("not tried: ") + e.what(), "see cluster.tls"));
    return Print(own);
  }
  JoinOptions join = JoinOptionsOf(config, plan, self, seed, arguments.member);
  join.self.build = DoctorBuild();
  join.tls = tls.get();
  // Absolute, as in a job: nodes may be started in different directories.
  if (self == 0) join.run_directory = std::filesystem::absolute(config.run.dir).string();
  DoctorOutcome outcome =
      MeetAndMeasure({config, plan, self, *key, std::move(join), std::move(own)});
  if (self == 0) return Print(outcome.findings);
  // On this machine the first process's table has them already.
  const bool seen = outcome.reported && arguments.member.local_processes > 0;
  std::erase_if(outcome.findings,
                [](const Finding& finding) { return finding.verdict != Verdict::kFailure; });
  if (!outcome.findings.empty() && !seen) Print(outcome.findings);
  return outcome.fails ? kExitNotMet : kExitDone;
}

int DoctorNode(const DoctorArguments& arguments, const LoadedConfig& loaded,
               const Variables& variables) {
  const Config& config = loaded.config;
  const ProcessPlan plan = PlanOf(arguments.member, config.cluster);
  if (plan.num_processes() == 1) return DoctorThisMachine(arguments, config, variables);
  const NodeChoice choice = ChooseNode(variables, arguments.member.node, plan);
  const Address seed = ChooseJoin(variables, arguments.member.join, config.cluster).address;
  if (choice.launched_per == LaunchedPer::kProcess) {
    return DoctorAsMember(arguments, config, plan, choice.node, seed);
  }
  MemberArguments member = arguments.member;
  member.join = ToString(seed);
  return StartAll(arguments.config.path, loaded.resolved_toml, plan, plan.OfNode(choice.node),
                  member);
}

int Doctor(DoctorArguments arguments) {
  const Variables variables = SettleMember(arguments.member, false);
  LoadedConfig loaded;
  const Config& config = loaded.config;
  try {
    loaded = LoadConfigOf(arguments.config, arguments.member.config_descriptor);
    static_cast<void>(JobPlan(config));
  } catch (const ConfigErrors& e) {
    Findings mistakes;
    for (const ConfigError& error : e.errors()) {
      mistakes.push_back(Fails("config", ToString(error), ""));
    }
    return Print(mistakes);
  } catch (const LayoutError& e) {
    return Print({Fails("config", e.what(), "")});
  }
  if (arguments.local > 1) {
    return DoctorLocal(arguments, loaded, LocalPlan(config.cluster, arguments.local));
  }
  if (arguments.member.join || arguments.member.local_processes > 0) {
    return DoctorNode(arguments, loaded, variables);
  }
  return DoctorThisMachine(arguments, config, variables);
}

}  // namespace

void AddDoctor(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "doctor",
      "Find what would fail before a job starts; trains nothing and leaves nothing behind.\n"
      "Checks this machine: configuration, data, disk, memory, cores, limits, clock, GPUs,\n"
      "names, ports, run key, transports. With --join, the same command on every node at once\n"
      "(or --local K here), the processes also meet as they would to train, compare versions,\n"
      "configurations, clocks and the run directory, and measure the network between the first\n"
      "and each other. The first prints all findings, the others their own failures.\n"
      "One line per check, failures last, each with the next step.\n"
      "Exit code: 0 nothing would fail (there may be warnings), 2 wrong arguments, 4 something\n"
      "would fail.");
  auto arguments = std::make_shared<DoctorArguments>();
  AddConfigArguments(*verb, arguments->config);
  auto* local = verb->add_option("--local", arguments->local,
                                 "meet in K processes of this machine instead of on nodes");
  local->type_name("K")->check(CLI::Range(1, 256));
  verb->add_option("--node", arguments->member.node,
                   "number of this node and of all nodes, counted from 0: 1/4 (default: the\n"
                   "launcher's variables, as for `troupe node`; without them and without --join\n"
                   "it is guessed, with a warning)")
      ->type_name("I/N")
      ->excludes(local);
  verb->add_option("--join", arguments->member.join, "meet the other nodes: where node 0 listens")
      ->type_name("HOST:PORT")
      ->excludes(local);
  AddMemberArguments(*verb, arguments->member);
  SetCommand(*verb, command, [arguments] { return Doctor(*arguments); });
}

}  // namespace troupe
