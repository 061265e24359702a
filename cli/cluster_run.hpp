// Work in several processes: as one of them (`troupe node`), or as the one who starts them all on
// this machine (`--local`).
#pragma once

#include <cstdint>
#include <string>

#include "cli/member_arguments.hpp"
#include "cli/work.hpp"

namespace CLI {
class App;
}

namespace troupe {

struct ClusterArguments {
  WorkArguments work;
  MemberArguments member;
  int local = 0;       ///< processes to start on this machine; 0 = none
  int restarts = 0;    ///< times to restart when a process was lost
  std::string resume;  ///< run directory of an earlier run to resume; empty: a new one
  // Said by the process that starts this one.
  std::int64_t attempt = 0;
  std::string into;  ///< run directory to resume in
};

/// --local.
void AddLocalArguments(CLI::App& app, ClusterArguments& arguments);

/// --resume.
void AddResumeArgument(CLI::App& app, ClusterArguments& arguments);

/// --steps and --dtype.
void AddVerifyArguments(CLI::App& app, WorkArguments& arguments);

/// In this process alone, or in `local` processes of this machine.
int RunHere(const ClusterArguments& arguments);
/// As one process (or one node's processes) of a job that a launcher has started.
int RunNodeOfJob(const ClusterArguments& arguments);

}  // namespace troupe
