#include "plan/mirrors.hpp"

#include <algorithm>
#include <cstddef>

namespace troupe {

std::vector<MirrorOf> PlanMirrors(const ProcessPlan& processes, std::int64_t replicas) {
  std::vector<std::vector<PlannedProcess>> nodes;
  std::size_t most = 0;
  for (int node = 0; node < processes.num_nodes(); ++node) {
    nodes.push_back(processes.OfNode(node));
    most = std::max(most, nodes.back().size());
  }
  std::vector<MirrorOf> mirrors;
  for (const PlannedProcess& process : processes.processes()) {
    const auto node = static_cast<std::size_t>(process.node);
    const auto place = static_cast<std::size_t>(process.process - nodes[node].front().process);
    std::vector<ProcessId> holders;
    const auto add = [&](std::size_t on, std::size_t shift) {
      const auto& all = nodes[on % nodes.size()];
      const ProcessId holder = all[(place + shift) % all.size()].process;
      const bool wanted = holder != process.process && std::ssize(holders) < replicas;
      if (wanted && std::ranges::find(holders, holder) == holders.end()) holders.push_back(holder);
    };
    for (std::size_t shift = 0; shift < most; ++shift) {
      for (std::size_t away = 1; away < nodes.size(); ++away) add(node + away, shift);
    }
    for (std::size_t shift = 1; shift < nodes[node].size(); ++shift) add(node, shift);
    for (const ProcessId holder : holders) mirrors.push_back({holder, process.process});
  }
  return mirrors;
}

}  // namespace troupe
