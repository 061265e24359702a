// The machines of a job: what the file leaves out, and how they are called in keys.
//
//   cluster.nodes = 2        "n0", "n1", the ranks divided evenly
//   [[cluster.nodes]]        as written; a node without a name is called n0, n1, ... by its
//   position nothing                  one node with all ranks
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "configs/config.hpp"

namespace troupe {

/// Whether `name` may be a node's: lower-case letters, digits, '.', '_' and '-', a letter or digit
/// first. It is part of process names, of log lines and of file names.
bool IsNodeName(std::string_view name);

/// "n3" of the node at position 3.
std::string DefaultNodeName(std::size_t index);

/// "cluster.nodes.NAME.KEY" of the node at `index`; its default name stands for one that is not
/// legal. Without `key` the table.
std::string NodeKey(std::string_view name, std::size_t index, std::string_view key = {});

/// `count` nodes that FillNodes gives their devices.
std::vector<ClusterNode> UnfilledNodes(int count);

/// Gives unfilled nodes their even share of the ranks, when it is a whole number, and makes the one
/// node of a file that names none.
void FillNodes(ClusterConfig& cluster);

/// Whether a mere count says the same: default names, no addresses, the same number of devices.
bool AreAlike(const std::vector<ClusterNode>& nodes);

}  // namespace troupe
