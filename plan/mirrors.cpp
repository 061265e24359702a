#include "plan/mirrors.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "layout/at.hpp"
#include "plan/job_plan.hpp"
#include "plan/optimizer_settings.hpp"

namespace troupe {
namespace {

struct PlacedShard {
  ShardPlace place;
  ShardAddress shard;
  ProcessId process = 0;
};

/// Equal for shards that hold the same state: stage, tp, and part of the optimizer's state; then ep, etp
/// and the part of the experts' state.
using StateKey = std::tuple<int, int, int, int, int, int>;

StateKey KeyOf(const Config& config, int stage, const ShardAddress& shard) {
  const ModuleConfig& module = FindModule(config, shard.module);
  const StateShardings shardings = ShardingsOf(config, module);
  const Coordinates at{.tp = shard.tp, .cp = shard.cp, .dp = shard.dp, .pp = shard.pp};
  const int part = shardings.others.IndexOf(module.layout.HolderAt(at));
  if (module.model->num_experts() == 0) return {stage, shard.tp, part, 0, 0, 0};
  const ExpertCoordinates experts = module.layout.ExpertsAt(at);
  return {stage, shard.tp, part, experts.ep, experts.etp, shardings.experts.IndexOf(experts.dp)};
}

/// The shards of each state, in the order of the holders: the first stores it.
std::vector<std::vector<PlacedShard>> ShardsByState(const JobPlan& plan,
                                                    const ProcessPlan& processes) {
  std::map<StateKey, std::vector<PlacedShard>> by_key;
  for (const auto& [rank, lock_step] : plan.lock_steps()) {
    for (const auto& [stage, shard] : plan.ShardsOn(rank)) {
      by_key[KeyOf(plan.config(), stage, shard)].push_back(
          {{rank, stage}, shard, processes.HomeOf(rank)});
    }
  }
  std::vector<std::vector<PlacedShard>> all;
  for (auto& [key, shards] : by_key) {
    std::ranges::sort(shards, {}, [](const PlacedShard& placed) {
      return std::pair(placed.shard.dp, placed.shard.cp);
    });
    all.push_back(std::move(shards));
  }
  return all;
}

/// The order in which other processes hold mirrors of a process.
class HolderOrder {
 public:
  explicit HolderOrder(const ProcessPlan& processes) : processes_(processes) {
    for (int node = 0; node < processes.num_nodes(); ++node) {
      nodes_.push_back(processes.OfNode(node));
      most_ = std::max(most_, nodes_.back().size());
    }
  }

  /// All other processes. First one process of each other node, then another one of each, and so on; the
  /// processes of the same node come last.
  /// If all nodes have as many processes, each process is first for one other. The mirrors of a process
  /// are together on few nodes, so that the loss of two nodes rarely takes both copies of a file.
  const std::vector<ProcessId>& Of(ProcessId process) {
    std::vector<ProcessId>& order = orders_[process];
    if (!order.empty()) return order;
    std::vector<bool> has(processes_.processes().size());
    has[At(process)] = true;
    const auto node = static_cast<std::size_t>(processes_.Of(process).node);
    const auto place = static_cast<std::size_t>(process - nodes_[node].front().process);
    const auto add = [&](std::size_t on, std::size_t shift) {
      const auto& all = nodes_[on % nodes_.size()];
      const ProcessId holder = all[(place + shift) % all.size()].process;
      if (!has[At(holder)]) order.push_back(holder);
      has[At(holder)] = true;
    };
    for (std::size_t shift = 0; shift < most_; ++shift) {
      for (std::size_t away = 1; away < nodes_.size(); ++away) add(node + away, shift);
    }
    for (std::size_t shift = 1; shift < nodes_[node].size(); ++shift) add(node, shift);
    return order;
  }

 private:
  const ProcessPlan& processes_;
  std::vector<std::vector<PlannedProcess>> nodes_;
  std::size_t most_ = 0;
  std::map<ProcessId, std::vector<ProcessId>> orders_;
};

/// Returns up to `count` processes of `order`, the best first: other nodes before that of `process`, then
/// nodes that hold none of this state yet, then processes with a replica.
std::vector<ProcessId> ChooseHolders(const ProcessPlan& processes, ProcessId process,
                                     const std::vector<ProcessId>& order,
                                     const std::map<ProcessId, ShardPlace>& replicas,
                                     std::int64_t count) {
  const int own_node = processes.Of(process).node;
  std::vector<ProcessId> chosen;
  std::map<int, int> held_by_node;
  std::vector<ProcessId> left = order;
  while (std::ssize(chosen) < count && !left.empty()) {
    const auto best = std::ranges::min_element(left, {}, [&](ProcessId holder) {
      const int node = processes.Of(holder).node;
      return std::tuple(node == own_node, held_by_node[node], !replicas.contains(holder));
    });
    chosen.push_back(*best);
    ++held_by_node[processes.Of(*best).node];
    left.erase(best);
  }
  return chosen;
}

}  // namespace

MirrorPlan PlanMirrors(const JobPlan& plan, const ProcessPlan& processes, std::int64_t replicas) {
  MirrorPlan mirrors;
  if (replicas == 0 || processes.num_processes() == 1) return mirrors;
  HolderOrder order(processes);
  std::map<std::pair<ProcessId, ProcessId>, std::vector<ShardPlace>> sent;
  for (const auto& shards : ShardsByState(plan, processes)) {
    const PlacedShard& first = shards.front();
    std::map<ProcessId, ShardPlace> makers;  // the first replica in each other process
    for (const PlacedShard& shard : shards) makers.try_emplace(shard.process, shard.place);
    for (const ProcessId holder :
         ChooseHolders(processes, first.process, order.Of(first.process), makers, replicas)) {
      const auto maker = makers.find(holder);
      if (maker != makers.end()) {
        mirrors.made[maker->second] = first.shard;
      } else {
        sent[{first.process, holder}].push_back(first.place);
      }
    }
  }
  for (auto& [between, shards] : sent) {
    mirrors.sent.push_back({between.second, between.first, std::move(shards)});
  }
  return mirrors;
}

}  // namespace troupe
