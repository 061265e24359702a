// Command line arguments by which one process of several joins the others, set by the user or by a
// launcher. Used by every verb whose processes meet.
#pragma once

#include <optional>
#include <string>

#include "app/launcher.hpp"
#include "app/meeting.hpp"
#include "cluster/run_key.hpp"
#include "cluster/variables.hpp"
#include "plan/process_plan.hpp"

namespace troupe {

struct MemberArguments {
  std::optional<std::string> node;  ///< "1/4"
  std::optional<std::string> join;
  std::string key_file;
  std::string address;
  // Set by the launcher of this process.
  int launcher = 0;            ///< process id of the launcher; 0: none
  int key_descriptor = -1;     ///< the run key, instead of a file
  int config_descriptor = -1;  ///< a HandedConfig, instead of the file
  bool child() const { return launcher != 0; }
  int local_processes = 0;  ///< number of processes of --local; 0: planned by the configuration
};

/// Reads the run key. Throws LaunchError if none is named or it cannot be read.
RunKey ReadKey(const MemberArguments& arguments);

/// This program's environment.
Variables ReadVariables();

/// Makes a child end with its launcher. Returns the environment, empty in a child, and takes a
/// missing key file from it.
Variables SettleMember(MemberArguments& arguments);

/// Returns the processes of the job. Throws LaunchError if --local does not allow their number.
ProcessPlan PlanOf(const MemberArguments& arguments, const ClusterConfig& cluster);
ProcessPlan LocalPlan(const ClusterConfig& cluster, int processes);

/// Returns the arguments for the children of a launcher that starts all `processes` of a job on
/// this machine, with a new port each time.
MemberArguments LocalMember(const Meeting& meeting, int processes);

/// Returns the child for `process`, which runs `verb` with all of `member` but its node. `config`
/// is the user's name of the configuration, for messages.
ChildProcess ChildOf(const std::string& verb, const std::string& config,
                     const MemberArguments& member, const ProcessPlan& plan,
                     const PlannedProcess& process);

}  // namespace troupe
