// Determines which process of the job this is, from the command line and from the variables that
// launchers set. Pure: the caller passes the variables in.
//
//   source                     number, of how many
//   --node I/N                 I, N; counted from 0
//   TROUPE_NODE=I/N            I, N
//   Slurm (srun)               SLURM_PROCID, SLURM_NTASKS; only with SLURM_STEP_ID, since a batch
//                              script also has the first two but is not a task
//   Open MPI (mpirun)          OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE
//   MPICH and others (PMI)     PMI_RANK, PMI_SIZE
//   torchrun                   GROUP_RANK, GROUP_WORLD_SIZE: its nodes, when it starts one worker
//                              on each; else RANK, WORLD_SIZE: its workers
//   Kubernetes (indexed job)   JOB_COMPLETION_INDEX, TROUPE_NUM_NODES
//
// All sources present must agree with each other and with the configuration. A wrong guess would
// start a job that waits for a process that is never started, or two processes with the same
// number. In a Slurm job mpirun starts its tasks from a separate step, whose SLURM_PROCID is a
// different number: use srun there, or unset SLURM_STEP_ID.
#pragma once

#include <optional>
#include <string>

#include "cluster/variables.hpp"
#include "plan/process_plan.hpp"

namespace troupe {

/// The unit that the launcher started once per number.
enum class LaunchedPer {
  kProcess,  ///< a process of the plan: `node` is a ProcessId
  kNode      ///< a node of several processes: this one starts the processes of its node
};

/// No source gives the number of this process.
struct NoNodeSource : LaunchError {
  using LaunchError::LaunchError;
};

struct NodeChoice {
  int node = 0;        ///< [0, num_nodes)
  int num_nodes = 1;   ///< processes of the plan, or nodes when launched_per is kNode
  std::string source;  ///< "--node", "SLURM_PROCID/SLURM_NTASKS"; "the plan" for a single process
  LaunchedPer launched_per = LaunchedPer::kProcess;
};

/// Determines the place of this task. `node_argument` is the value of --node, "1/4". Throws
/// LaunchError if sources disagree, if one is incomplete or malformed, if the number of tasks is
/// neither the plan's number of processes nor of nodes; NoNodeSource if there is no source but more
/// than one process.
NodeChoice ChooseNode(const Variables& variables, const std::optional<std::string>& node_argument,
                      const ProcessPlan& plan);

/// "RANK/WORLD_SIZE say 1/2" if a launcher has started more than one task; for commands that are a
/// whole job by themselves. Malformed variables are ignored.
std::optional<std::string> TaskOfMany(const Variables& variables);

}  // namespace troupe
