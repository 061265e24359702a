// Which part of a job the doctor looks at here: by the same sources as `troupe node`, and
// where they say nothing by a guess that is called one.
#pragma once

#include <optional>
#include <string>

#include "cli/doctor/checks.hpp"
#include "cli/doctor/machine.hpp"
#include "cluster/process_plan.hpp"
#include "cluster/variables.hpp"
#include "configs/config.hpp"

namespace troupe {

struct NodeHere {
  std::optional<int> node;  ///< nothing: neither said nor guessed
  Findings findings;        ///< none when it was said
};

/// `node_argument`: the value of --node. Throws LaunchError for one that ChooseNode() refuses. What
/// it refuses of the launcher's variables is a failure; that nothing says it is a warning, since
/// the launcher may say it when the job starts.
NodeHere FindNode(const Variables& variables, const std::optional<std::string>& node_argument,
                  const ProcessPlan& plan, const ClusterConfig& cluster);

/// What `node` would run; when it is not known, what the node with most ranks would.
MachinePart PartOfNode(const ProcessPlan& plan, std::optional<int> node);

/// "8 ranks in 2 processes (n0, n1); here: 4 ranks, in n0".
std::string RanksText(const MachinePart& part, const ProcessPlan& plan);

}  // namespace troupe
