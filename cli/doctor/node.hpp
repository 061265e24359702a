// Chooses the part of a job that the doctor checks here, by the same sources as `troupe node`, or
// by a guess, which it reports.
#pragma once

#include <optional>
#include <string>

#include "cli/doctor/checks.hpp"
#include "cli/doctor/machine.hpp"
#include "cluster/variables.hpp"
#include "configs/config.hpp"
#include "plan/process_plan.hpp"

namespace troupe {

struct NodeHere {
  std::optional<int> node;  ///< nothing if neither given nor guessed
  Findings findings;        ///< empty if a source gave it
};

/// `node_argument`: the value of --node. Throws LaunchError if ChooseNode() refuses it. Launcher
/// variables that ChooseNode() refuses are a failure; a missing source is a warning, since the
/// launcher may set it when the job starts.
NodeHere FindNode(const Variables& variables, const std::optional<std::string>& node_argument,
                  const ProcessPlan& plan, const ClusterConfig& cluster);

/// Returns the part of `node`, or of the node with most ranks if it is not known.
MachinePart PartOfNode(const ProcessPlan& plan, std::optional<int> node);

/// "8 ranks in 2 processes (n0, n1); here: 4 ranks, in n0".
std::string RanksText(const MachinePart& part, const ProcessPlan& plan);

}  // namespace troupe
