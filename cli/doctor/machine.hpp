// What would fail on this machine alone: everything that can be tried before the nodes meet.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/doctor/checks.hpp"
#include "cluster/process_plan.hpp"
#include "cluster/socket.hpp"
#include "configs/config.hpp"

namespace troupe {

/// The part of a job that this machine would have.
struct MachinePart {
  std::vector<PlannedProcess> processes;  ///< that would run here, never empty
  std::optional<int> node;                ///< its number, when it is known
  int num_processes = 1;                  ///< of the whole job
  int num_nodes = 1;                      ///< likewise
  bool first = true;                      ///< process 0 would be here
  bool meets = false;                     ///< the nodes meet afterwards, which tries the rest
  std::string key_file;                   ///< empty: none given
  bool key_inherited = false;             ///< from the process that started this one
  std::optional<Address> join;            ///< where process 0 listens, if anybody says
  std::string no_join;                    ///< else why not
  int num_ranks() const;
};

/// Tries and reads all of it; makes nothing that stays. Takes as long as opening the data and
/// resolving the names does.
Findings CheckMachine(const Config& config, const MachinePart& part);

}  // namespace troupe
