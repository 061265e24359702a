// The machines of a job: their defaults, and their names in keys.
//
//   cluster.nodes = 2    "n0", "n1", with the ranks divided evenly
//   [[cluster.nodes]]    as written; a node without a name is n0, n1, ... by its position
//   unset                one node with all ranks
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "configs/config.hpp"

namespace troupe {

/// Returns whether `name` is a legal node name: lower-case letters, digits, '.', '_' and '-', a
/// letter or digit first. It is part of process names, log lines and file names.
bool IsNodeName(std::string_view name);

/// Returns "n3" for the node at position 3.
std::string DefaultNodeName(std::size_t index);

/// Returns "cluster.nodes.NAME.KEY" for the node at `index`, with its default name if `name` is not
/// legal. Without `key`: the table.
std::string NodeKey(std::string_view name, std::size_t index, std::string_view key = {});

/// Returns `count` nodes without devices; FillNodes sets those.
std::vector<ClusterNode> UnfilledNodes(int count);

/// Divides the ranks evenly among unfilled nodes, if that is possible. Adds the one node of a file
/// that names none.
void FillNodes(ClusterConfig& cluster);

/// Returns whether a count is enough to write the nodes: default names, no addresses, the same
/// number of devices.
bool AreAlike(const std::vector<ClusterNode>& nodes);

}  // namespace troupe
