// Runs work in one process, as one process of several (`troupe node`), or as the launcher of
// several processes on this machine (`--local`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/member.hpp"
#include "app/work.hpp"

namespace troupe {

struct ClusterArguments {
  WorkArguments work;
  MemberArguments member;
  int local = 0;       ///< processes to start on this machine; 0 = none
  int restarts = 0;    ///< how often the job may go on after the loss of a process
  std::string resume;  ///< run directory of the run to resume; empty: start a new run
  std::string from;    ///< run or checkpoint whose state a new run begins with; empty: none
  std::optional<std::int64_t> from_step = {};  ///< of `from`; its newest checkpoint unless set
  std::vector<std::string> accept = {};        ///< ResumeTerms::accepted
  // Set by the launcher of this process.
  std::int64_t generation = 0;  ///< that it asks for when the job meets
  std::string into;             ///< run directory to resume in
  std::string start;            ///< checkpoint to begin with if `into` has none
};

/// Runs in this process alone, or in `local` processes of this machine. Returns the exit code.
int RunHere(const ClusterArguments& arguments);
/// Runs one process, or all processes of one node, of a job whose nodes are started one by one.
int RunNodeOfJob(const ClusterArguments& arguments);

}  // namespace troupe
