// What one process of several is told on its command line of how the others are met: by people, or
// by the process that starts it. The same for every verb whose processes meet.
#pragma once

#include <optional>
#include <string>

#include "cli/commands.hpp"
#include "cli/launcher.hpp"
#include "cli/meeting.hpp"
#include "cluster/process_plan.hpp"
#include "cluster/run_key.hpp"
#include "cluster/variables.hpp"

namespace CLI {
class App;
}

namespace troupe {

struct MemberArguments {
  std::optional<std::string> node;  ///< "1/4"
  std::optional<std::string> join;
  std::string key_file;
  std::string address;
  // Said by the process that starts this one.
  int launcher = 0;         ///< its process number; 0: none has started this one
  int key_descriptor = -1;  ///< the run key, instead of a file
  bool child() const { return launcher != 0; }
  int local_processes = 0;  ///< the plan is --local's
};

/// All but --node and --join, which every verb explains in its own words.
void AddMemberArguments(CLI::App& verb, MemberArguments& arguments);

/// The run key. Throws LaunchError when there is none, or it cannot be read.
RunKey ReadKey(const MemberArguments& arguments);

/// This program's environment.
Variables ReadVariables();

/// Makes a child end with its parent. Returns the variables to decide by; a key file that is not
/// given is taken from there.
Variables SettleMember(MemberArguments& arguments);

/// The processes of the job. Throws LaunchError for a number of them that --local cannot have.
ProcessPlan PlanOf(const MemberArguments& arguments, const ClusterConfig& cluster);
ProcessPlan LocalPlan(const ClusterConfig& cluster, int processes);

/// What the children of a launcher are told that starts all `processes` of a job on this machine. A
/// new port each time.
MemberArguments LocalMember(const Meeting& meeting, int processes);

/// The child that is `process`: `verb` on the same configuration, and all of `member` but its node.
ChildProcess ChildOf(const std::string& verb, const ConfigArguments& config,
                     const MemberArguments& member, const ProcessPlan& plan,
                     const PlannedProcess& process);

}  // namespace troupe
