// Which process of the job this is, from the command line and from the variables that
// launchers set. Pure: the caller passes the variables in.
//
//   source                     number, of how many
//   --node I/N                 I, N; counted from 0
//   TROUPE_NODE=I/N            I, N
//   Slurm (srun)               SLURM_PROCID, SLURM_NTASKS; only with SLURM_STEP_ID, since a batch
//                              script has the first two as well and is no task
//   Open MPI (mpirun)          OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE
//   MPICH and others (PMI)     PMI_RANK, PMI_SIZE
//   torchrun                   GROUP_RANK, GROUP_WORLD_SIZE: its nodes, when it starts one worker
//                              on each; else RANK, WORLD_SIZE: its workers
//   Kubernetes (indexed job)   JOB_COMPLETION_INDEX, TROUPE_NUM_NODES
//
// All that are present must say the same, and what the configuration plans. A guess that is wrong
// would start a job that waits for a process nobody starts, or two with the same number. In a Slurm
// job mpirun starts its tasks from a step of its own, whose SLURM_PROCID is another number: there
// use srun, or unset SLURM_STEP_ID.
#pragma once

#include <optional>
#include <string>

#include "cluster/process_plan.hpp"
#include "cluster/variables.hpp"

namespace troupe {

/// What the launcher started once per number.
enum class LaunchedPer {
  kProcess,  ///< every process of the plan: `node` is a ProcessId
  kNode      ///< every node, of several processes each: this one starts the node's processes
};

struct NodeChoice {
  int node = 0;        ///< [0, num_nodes)
  int num_nodes = 1;   ///< processes of the plan, or nodes when launched_per is kNode
  std::string source;  ///< "--node", "SLURM_PROCID/SLURM_NTASKS"; "the plan" for a single process
  LaunchedPer launched_per = LaunchedPer::kProcess;
};

/// Which of the launched tasks this is. `node_argument`: the value of --node, "1/4".
/// Throws LaunchError when sources disagree, when one is half set or malformed, when the number of
/// tasks is neither the plan's processes nor its nodes, and when there is no source but more than
/// one process.
NodeChoice ChooseNode(const Variables& variables, const std::optional<std::string>& node_argument,
                      const ProcessPlan& plan);

/// "RANK/WORLD_SIZE say 1/2" where a launcher has started more than this one; for commands that are
/// a job of their own. Variables that make no sense are no launcher's.
std::optional<std::string> TaskOfMany(const Variables& variables);

}  // namespace troupe
