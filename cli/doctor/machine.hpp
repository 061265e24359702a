// Finds failures to be expected on this machine: runs all checks that do not need the other nodes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/doctor/checks.hpp"
#include "cluster/socket.hpp"
#include "configs/config.hpp"
#include "plan/process_plan.hpp"

namespace troupe {

/// The part of a job that would run on this machine.
struct MachinePart {
  std::vector<PlannedProcess> processes;  ///< never empty
  std::optional<int> node;                ///< its number, if known
  int num_processes = 1;                  ///< of the whole job
  int num_nodes = 1;                      ///< likewise
  bool first = true;                      ///< process 0 would run here
  bool meets = false;                     ///< the nodes meet afterwards and try the rest
  std::string key_file;                   ///< empty: none given
  bool key_inherited = false;             ///< from the launcher
  std::optional<Address> join;            ///< where process 0 listens, if known
  std::string no_join;                    ///< else why it is not known
  std::vector<int> ranks() const;
  int num_ranks() const { return static_cast<int>(ranks().size()); }
};

/// Runs all checks and leaves no files. Blocks while it opens the data and resolves names.
Findings CheckMachine(const Config& config, const MachinePart& part);

}  // namespace troupe
