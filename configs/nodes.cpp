#include "configs/nodes.hpp"

#include <algorithm>

namespace troupe {

bool IsNodeName(std::string_view name) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const auto letter = [&](char c) { return plain(c) || c == '.' || c == '_' || c == '-'; };
  return !name.empty() && plain(name.front()) && std::ranges::all_of(name, letter);
}

std::string DefaultNodeName(std::size_t index) { return "n" + std::to_string(index); }

std::string NodeKey(std::string_view name, std::size_t index, std::string_view key) {
  std::string dotted = "cluster.nodes.";
  dotted += IsNodeName(name) ? std::string(name) : DefaultNodeName(index);
  return key.empty() ? dotted : dotted + "." + std::string(key);
}

std::vector<ClusterNode> UnfilledNodes(int count) {
  std::vector<ClusterNode> nodes(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].name = DefaultNodeName(i);
  return nodes;
}

void FillNodes(ClusterConfig& cluster) {
  if (cluster.nodes.empty()) cluster.nodes = UnfilledNodes(1);
  const int count = static_cast<int>(cluster.nodes.size());
  const bool unfilled =
      std::ranges::all_of(cluster.nodes, [](const ClusterNode& node) { return node.devices == 0; });
  if (!unfilled || cluster.ranks % count != 0) return;
  for (auto& node : cluster.nodes) node.devices = cluster.ranks / count;
}

bool AreAlike(const std::vector<ClusterNode>& nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool alike = nodes[i].name == DefaultNodeName(i) && nodes[i].address.empty() &&
                       nodes[i].devices == nodes.front().devices;
    if (!alike) return false;
  }
  return true;
}

}  // namespace troupe
