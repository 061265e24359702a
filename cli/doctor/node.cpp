#include "cli/doctor/node.hpp"

#include <vector>

#include "cli/doctor/facts.hpp"
#include "cluster/environment.hpp"
#include "cluster/text.hpp"

namespace troupe {
namespace {

/// ChooseNode()'s message if no source gives the node. Separates that from sources that contradict
/// each other, which are an error in any case.
std::string NoSourceText(const ProcessPlan& plan) {
  try {
    static_cast<void>(ChooseNode({}, std::nullopt, plan));
  } catch (const LaunchError& e) {
    return e.what();
  }
  return "";
}

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

std::string NamesOf(const std::vector<PlannedProcess>& processes) {
  std::vector<std::string> names;
  for (const PlannedProcess& process : processes) names.push_back(process.name);
  return Enumerate(names);
}

}  // namespace

NodeHere FindNode(const Variables& variables, const std::optional<std::string>& node_argument,
                  const ProcessPlan& plan, const ClusterConfig& cluster) {
  if (plan.num_nodes() == 1 && !node_argument) return {0, {}};
  try {
    const NodeChoice choice = ChooseNode(variables, node_argument, plan);
    if (choice.launched_per == LaunchedPer::kNode) return {choice.node, {}};
    return {plan.processes()[static_cast<std::size_t>(choice.node)].node, {}};
  } catch (const LaunchError& e) {
    if (node_argument) throw;
    const std::optional<int> node = NodeByAddress(cluster);
    if (e.what() != NoSourceText(plan)) return {node, {Fails("node", e.what(), "")}};
    return {node, {Guessed(node, plan, cluster)}};
  }
}

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

std::string RanksText(const MachinePart& part, const ProcessPlan& plan) {
  const std::string ranks =
      std::to_string(plan.num_ranks()) + (plan.num_ranks() == 1 ? " rank in " : " ranks in ");
  if (part.num_processes == 1) return ranks + "one process";
  const std::string all =
      ranks + std::to_string(part.num_processes) + " processes (" + plan.Names() + ")";
  if (static_cast<int>(part.processes.size()) == part.num_processes) return all + ", all here";
  return all + "; here: " + std::to_string(part.num_ranks()) +
         (part.num_ranks() == 1 ? " rank" : " ranks") + ", in " + NamesOf(part.processes);
}

}  // namespace troupe
