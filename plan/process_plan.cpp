#include "plan/process_plan.hpp"

#include <cstdint>
#include <set>
#include <stdexcept>
#include <utility>

#include "layout/at.hpp"
#include "layout/text.hpp"

namespace troupe {

/// Returns the nodes of a configuration, which the loader may not have filled.
static std::vector<ClusterNode> NodesOf(const ClusterConfig& cluster) {
  if (cluster.nodes.empty()) return {{"n0", "", cluster.ranks}};
  std::int64_t devices = 0;
  for (const auto& node : cluster.nodes) devices += node.devices;
  if (devices != cluster.ranks) {
    throw std::invalid_argument("cluster.nodes: " + Counted(std::ssize(cluster.nodes), "node") +
                                " with " + Counted(devices, "device") +
                                ", expected cluster.ranks = " + std::to_string(cluster.ranks));
  }
  return cluster.nodes;
}

static std::vector<ClusterNode> EvenNodes(int ranks, int count) {
  std::vector<ClusterNode> nodes(At(count));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i] = {"n" + std::to_string(i), "", ranks / count};
  }
  return nodes;
}

void ProcessPlan::Add(std::string name, int node, int num_ranks) {
  PlannedProcess process{num_processes(), std::move(name), node, {}};
  for (int i = 0; i < num_ranks; ++i) {
    process.ranks.push_back(this->num_ranks());
    homes_.push_back(process.process);
  }
  processes_.push_back(std::move(process));
}

ProcessPlan::ProcessPlan(const std::vector<ClusterNode>& nodes, ProcessesPer per) {
  for (const auto& node : nodes) {
    if (node.devices < 1) {
      throw std::invalid_argument("node " + node.name + ": expected at least 1 rank, got " +
                                  std::to_string(node.devices));
    }
    if (per == ProcessesPer::kNode) {
      Add(node.name, num_nodes_, node.devices);
    } else {
      for (int i = 0; i < node.devices; ++i) {
        Add(node.name + ".d" + std::to_string(i), num_nodes_, 1);
      }
    }
    ++num_nodes_;
  }
}

ProcessPlan::ProcessPlan(const ClusterConfig& cluster)
    : ProcessPlan(NodesOf(cluster), cluster.processes) {}

ProcessPlan ProcessPlan::Single(int ranks) {
  return ProcessPlan(EvenNodes(ranks, 1), ProcessesPer::kNode);
}

ProcessPlan ProcessPlan::Local(const ClusterConfig& cluster, int processes) {
  ProcessPlan planned(cluster);
  if (planned.num_processes() == processes) return planned;
  if (planned.num_nodes() == processes) return ProcessPlan(NodesOf(cluster), ProcessesPer::kNode);
  const int ranks = cluster.ranks;
  if (processes < 1 || ranks % processes != 0) {
    std::set<std::int64_t> possible = {planned.num_processes(), planned.num_nodes()};
    for (int count = 1; count <= ranks; ++count) {
      if (ranks % count == 0) possible.insert(count);
    }
    throw std::invalid_argument("expected " + AnyOf(possible) +
                                " local processes for cluster.ranks = " + std::to_string(ranks) +
                                ", got " + std::to_string(processes));
  }
  return ProcessPlan(EvenNodes(ranks, processes), ProcessesPer::kNode);
}

ProcessPlan ProcessPlan::Part(const std::vector<ProcessId>& processes,
                              const std::vector<int>& num_ranks) const {
  ProcessPlan part;
  int last_node = -1;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const PlannedProcess& process = Of(processes[i]);
    if (process.node != std::exchange(last_node, process.node)) ++part.num_nodes_;
    part.Add(process.name, part.num_nodes_ - 1, num_ranks[i]);
  }
  return part;
}

std::vector<PlannedProcess> ProcessPlan::OfNode(int node) const {
  std::vector<PlannedProcess> processes;
  for (const PlannedProcess& process : processes_) {
    if (process.node == node) processes.push_back(process);
  }
  return processes;
}

ProcessId ProcessPlan::HomeOf(int rank) const {
  if (rank >= 0 && rank < num_ranks()) return homes_[At(rank)];
  throw std::out_of_range("rank " + std::to_string(rank) + " is not in the job, expected 0 to " +
                          std::to_string(num_ranks() - 1));
}

std::string ProcessPlan::Names() const {
  static constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (i == kShown) return text + " and " + std::to_string(processes_.size() - i) + " more";
    text += (i == 0 ? "" : ", ") + processes_[i].name;
  }
  return text;
}

}  // namespace troupe
