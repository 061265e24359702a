// Which processes a job has, and which ranks live in each: a pure function of the configuration, so
// that every process works it out for itself and all get the same.
//
//   processes = "node"      one process per node, called like the node: "n0", "n1"
//   processes = "device"    one process per rank: "n0.d0", "n0.d1", "n1.d0"
//
// Processes and ranks are numbered through in the order of the nodes; process 0 is where the others
// join.
#pragma once

#include <string>
#include <vector>

#include "configs/config.hpp"
#include "transport/data_plane.hpp"

namespace troupe {

struct PlannedProcess {
  ProcessId process = 0;
  std::string name;        ///< "n1", "n1.d0"; no two are the same
  int node = 0;            ///< position of its node, [0, num_nodes)
  std::vector<int> ranks;  ///< ascending and consecutive, never empty
  friend bool operator==(const PlannedProcess&, const PlannedProcess&) = default;
};

class ProcessPlan {
 public:
  /// What the configuration says; no nodes in it are one node with all ranks. Throws
  /// std::invalid_argument when the devices of the nodes are not cluster.ranks, which the loader
  /// refuses, too.
  explicit ProcessPlan(const ClusterConfig& cluster);

  /// All ranks in one process, "n0".
  static ProcessPlan Single(int ranks);

  /// The same ranks in `processes` processes of one machine. When the configuration plans as many
  /// processes, or has as many nodes, it is these; else the ranks are divided evenly over n0, n1,
  /// ... Throws std::invalid_argument with the possible numbers for any other.
  static ProcessPlan Local(const ClusterConfig& cluster, int processes);

  const std::vector<PlannedProcess>& processes() const { return processes_; }
  int num_processes() const { return static_cast<int>(processes_.size()); }
  int num_nodes() const { return num_nodes_; }
  int num_ranks() const { return static_cast<int>(homes_.size()); }

  /// The processes of one node, none for a node outside the job.
  std::vector<PlannedProcess> OfNode(int node) const;

  /// The process in which `rank` lives. Throws std::out_of_range for a rank outside the job.
  ProcessId HomeOf(int rank) const;

  /// "n0, n1, n2": for messages; long lists are cut short.
  std::string Names() const;

 private:
  ProcessPlan(const std::vector<ClusterNode>& nodes, ProcessesPer per);
  void Add(std::string name, int node, int num_ranks);

  std::vector<PlannedProcess> processes_;
  std::vector<ProcessId> homes_;  ///< by rank
  int num_nodes_ = 0;
};

}  // namespace troupe
