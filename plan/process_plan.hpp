// The processes of a job and the ranks in each. A pure function of the configuration, so every
// process computes the same plan.
//
//   processes = "node"      one process per node, with the node's name: "n0", "n1"
//   processes = "device"    one process per rank: "n0.d0", "n0.d1", "n1.d0"
//
// Processes and ranks are numbered in the order of the nodes. The others join at process 0.
#pragma once

#include <string>
#include <vector>

#include "configs/config.hpp"
#include "layout/at.hpp"
#include "layout/ids.hpp"

namespace troupe {

struct PlannedProcess {
  ProcessId process = 0;
  std::string name;  ///< "n1", "n1.d0"; unique
  int node = 0;      ///< position of its node, [0, num_nodes)
  /// Ascending and consecutive. Empty only in a Part().
  std::vector<int> ranks;
  friend bool operator==(const PlannedProcess&, const PlannedProcess&) = default;
};

class ProcessPlan {
 public:
  /// Plans as configured; without nodes, one node with all ranks. Throws std::invalid_argument if
  /// the devices of the nodes do not add up to cluster.ranks, which the loader also refuses.
  explicit ProcessPlan(const ClusterConfig& cluster);

  /// Returns a plan with all ranks in one process, "n0".
  static ProcessPlan Single(int ranks);

  /// Returns a plan with the same ranks in `processes` processes of one machine. If the
  /// configuration plans as many processes, or has as many nodes, uses those. Else divides the
  /// ranks evenly over n0, n1, ... Throws std::invalid_argument with the possible numbers for any
  /// other number.
  static ProcessPlan Local(const ClusterConfig& cluster, int processes);

  /// Returns the plan of some of these processes, ascending, with `num_ranks` ranks each. They keep
  /// their names. Processes, nodes and ranks are numbered anew.
  ProcessPlan Part(const std::vector<ProcessId>& processes,
                   const std::vector<int>& num_ranks) const;

  const std::vector<PlannedProcess>& processes() const { return processes_; }
  const PlannedProcess& Of(ProcessId process) const { return processes_[At(process)]; }
  int num_processes() const { return static_cast<int>(processes_.size()); }
  int num_nodes() const { return num_nodes_; }
  int num_ranks() const { return static_cast<int>(homes_.size()); }

  /// Returns the processes of one node, none for a node outside the job.
  std::vector<PlannedProcess> OfNode(int node) const;

  /// Returns the process of `rank`. Throws std::out_of_range for a rank outside the job.
  ProcessId HomeOf(int rank) const;

  /// Returns "n0, n1, n2" for messages. Long lists are shortened.
  std::string Names() const;

 private:
  ProcessPlan() = default;
  ProcessPlan(const std::vector<ClusterNode>& nodes, ProcessesPer per);
  void Add(std::string name, int node, int num_ranks);

  std::vector<PlannedProcess> processes_;
  std::vector<ProcessId> homes_;  ///< by rank
  int num_nodes_ = 0;
};

}  // namespace troupe
