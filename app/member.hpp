// How one process of several joins the others: the command line arguments that the user or a
// launcher sets, and the options of Join() that follow from them and the configuration.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "app/launcher.hpp"
#include "cluster/join.hpp"
#include "cluster/run_key.hpp"
#include "cluster/tls.hpp"
#include "cluster/variables.hpp"
#include "configs/config.hpp"
#include "plan/process_plan.hpp"
#include "transport/descriptor.hpp"

namespace troupe {

struct MemberArguments {
  std::optional<std::string> node;  ///< "1/4"
  std::optional<std::string> join;
  std::string key_file;
  std::string address;
  bool spare = false;  ///< takes a lost process's place: the configured address is not its own
  // Set by the launcher of this process.
  int launcher = 0;            ///< process id of the launcher; 0: none
  int key_descriptor = -1;     ///< the run key, instead of a file
  int config_descriptor = -1;  ///< a HandedConfig, instead of the file
  bool child() const { return launcher != 0; }
  int local_processes = 0;  ///< number of processes of --local; 0: planned by the configuration
};

/// Reads the run key. Throws LaunchError if none is named or it cannot be read.
RunKey ReadKey(const MemberArguments& arguments);

/// A new run key in memory, for children to inherit. It is released however the processes end.
/// Throws std::runtime_error if the system has no memory or no descriptor left.
Descriptor NewKey();

/// This program's environment.
Variables ReadVariables();

/// Makes a child end with its launcher: at once in a job of several launchers that goes on without it
/// (`lasting`), else like the whole job at a signal. Returns the environment, empty in a child, and takes
/// a missing key file from it.
Variables SettleMember(MemberArguments& arguments, bool lasting);

/// Returns the processes of the job. Throws LaunchError if --local does not allow their number.
ProcessPlan PlanOf(const MemberArguments& arguments, const ClusterConfig& cluster);
ProcessPlan LocalPlan(const ClusterConfig& cluster, int processes);

/// Returns the arguments for the children of a launcher that starts all `processes` of a job on
/// this machine, with a new port of the loopback interface each time. `key` is from NewKey().
MemberArguments LocalMember(const Descriptor& key, int processes);

/// Returns the child for `process`, which runs `verb` with all of `member` but its node. `config`
/// is the user's name of the configuration, for messages.
ChildProcess ChildOf(const std::string& verb, const std::string& config,
                     const MemberArguments& member, const ProcessPlan& plan,
                     const PlannedProcess& process);

/// Returns the TLS context of the connections between processes that meet at `seed`, which it must
/// outlive; null if they are not encrypted. Throws LaunchError if files are missing or do not
/// match, and JoinError if the name in `seed` does not resolve within `patience`.
std::unique_ptr<TlsContext> TlsOf(const ClusterConfig& cluster, const Address& seed,
                                  std::chrono::milliseconds patience);

std::chrono::milliseconds Milliseconds(double seconds);

/// Whether `self` prints the progress of a meeting: process 0, one process of each other node, and those
/// without a launcher.
bool SpeaksForNode(const MemberArguments& member, const ProcessPlan& plan, ProcessId self);

/// Returns all options but build, generation, run_directory, listening and tls. The process's address
/// is the one in `arguments`, else the configured one, else the one from which it reaches `seed`.
JoinOptions JoinOptionsOf(const Config& config, const ProcessPlan& plan, ProcessId self,
                          const Address& seed, const MemberArguments& arguments);

}  // namespace troupe
