// Runs work in one process, as one process of several (`troupe node`), or as the launcher of
// several processes on this machine (`--local`).
#pragma once

#include <cstdint>
#include <string>

#include "app/member.hpp"
#include "app/work.hpp"

namespace troupe {

struct ClusterArguments {
  WorkArguments work;
  MemberArguments member;
  int local = 0;       ///< processes to start on this machine; 0 = none
  int restarts = 0;    ///< most restarts after the loss of a process
  std::string resume;  ///< run directory of the run to resume; empty: start a new run
  // Set by the launcher of this process.
  std::int64_t attempt = 0;
  std::string into;  ///< run directory to resume in
};

/// Runs in this process alone, or in `local` processes of this machine. Returns the exit code.
int RunHere(const ClusterArguments& arguments);
/// Runs one process, or all processes of one node, of a job whose nodes are started one by one.
int RunNodeOfJob(const ClusterArguments& arguments);

}  // namespace troupe
