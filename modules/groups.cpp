#include "modules/groups.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trace/actor_id.hpp"
#include "transport/group.hpp"

namespace troupe {
namespace {

/// Calls `visit` with every shard of `module`, its stage (as pp) slowest, tp fastest.
template <class Visit>
void ForEachShard(const ModuleConfig& module, Visit visit) {
  const Layout& layout = module.layout;
  for (int pp = 0; pp < module.num_stages(); ++pp) {
    for (int dp = 0; dp < layout.dp; ++dp) {
      for (int cp = 0; cp < layout.cp; ++cp) {
        for (int tp = 0; tp < layout.tp; ++tp) visit(Coordinates{tp, cp, dp, pp});
      }
    }
  }
}

// The views of ShardGroups.
std::unique_ptr<Communicator>& TensorOf(ShardGroups& groups) { return groups.tensor; }
std::unique_ptr<Communicator>& ContextOf(ShardGroups& groups) { return groups.context; }
std::unique_ptr<Communicator>& DataOf(ShardGroups& groups) { return groups.others.data; }
std::unique_ptr<Communicator>& ShardsOf(ShardGroups& groups) { return groups.others.shards; }
std::unique_ptr<Communicator>& ExpertDataOf(ShardGroups& groups) { return groups.experts.data; }
std::unique_ptr<Communicator>& ExpertShardsOf(ShardGroups& groups) { return groups.experts.shards; }
std::unique_ptr<Communicator>& ExpertOf(ShardGroups& groups) { return groups.expert; }
std::unique_ptr<Communicator>& BalanceOf(ShardGroups& groups) { return groups.balance; }
std::unique_ptr<Communicator>& KeyValueOf(ShardGroups& groups) { return groups.key_value; }
std::unique_ptr<Communicator>& SummedOf(ShardGroups& groups) { return groups.summed; }
std::unique_ptr<Communicator>& TiedOf(ShardGroups& groups) { return groups.tied; }

/// `count` coordinates from `at` on along one axis.
std::vector<Coordinates> Along(Coordinates at, int Coordinates::*axis, int count) {
  std::vector<Coordinates> members;
  for (int i = 0; i < count; ++i, ++(at.*axis)) members.push_back(at);
  return members;
}

int HighestRank(const Config& config) {
  int highest = 0;
  for (const ModuleConfig& module : config.modules) {
    for (const int rank : module.ranks) highest = std::max(highest, rank);
  }
  return highest;
}

}  // namespace

int KeyValueSharing(const ModuleConfig& module) {
  const auto kv_heads = static_cast<int>(module.model->shared_kv_heads());
  const int tp = module.layout.tp;
  return tp > kv_heads && kv_heads > 0 && tp % kv_heads == 0 ? tp / kv_heads : 1;
}

GroupTable::GroupTable(const Config& config, const std::shared_ptr<AbortSignal>& abort)
    : GroupTable(config, ProcessPlan::Single(HighestRank(config) + 1), nullptr, abort) {}

GroupTable::GroupTable(const Config& config, const ProcessPlan& processes, DataPlane* plane,
                       const std::shared_ptr<AbortSignal>& abort, GroupWaits* waits) {
  for (const ModuleConfig& module : config.modules) {
    if (module.inline_in) continue;
    JoinAll({module, ShardingsOf(config, module), GridOf(config, module), processes, plane, abort,
             waits});
  }
}

void GroupTable::Join(const Peers& peers, const char* kind, View view,
                      const std::vector<Coordinates>& members) {
  const auto rank_of = [&](Coordinates at) {
    at.pp %= peers.module.layout.pp;
    return peers.grid.RankAt(at);
  };
  std::vector<ProcessId> homes;
  std::vector<std::string> devices;
  for (const Coordinates& at : members) {
    homes.push_back(peers.processes.HomeOf(rank_of(at)));
    devices.push_back(ToString(DeviceActor(rank_of(at))));
  }
  const ProcessId self = peers.plane == nullptr ? 0 : peers.plane->self();
  if (std::ranges::find(homes, self) == homes.end()) return;
  const Coordinates& first = members.front();
  const std::string& module = peers.module.name;
  const std::string name = std::string(kind) + " " + module + ".s" + std::to_string(first.pp) +
                           " dp" + std::to_string(first.dp) + " cp" + std::to_string(first.cp) +
                           " tp" + std::to_string(first.tp);
  auto communicators = MakeGroup(name, homes, peers.plane, peers.abort, peers.waits, devices);
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (homes[i] != self) continue;
    const Coordinates& at = members[i];
    const Key shard{module, at.pp, at.dp, at.cp, at.tp};
    view(groups_[shard]) = std::move(communicators[i]);
    if (members.size() == 1) continue;
    memberships_[rank_of(at)].push_back({shard, view, {peers.waits, name, devices}});
  }
}

void GroupTable::JoinAll(const Peers& peers) {
  const ModuleConfig& module = peers.module;
  const Layout& layout = module.layout;
  const int sharing = KeyValueSharing(module);
  const bool tied = module.head_tied_across_stages();
  ForEachShard(module, [&](const Coordinates& at) {
    const auto join = [&](const char* kind, View view, int Coordinates::*axis, int count) {
      Join(peers, kind, view, Along(at, axis, count));
    };
    const int holder = layout.HolderAt(at);
    const auto join_holders = [&](const char* kind, View view, int count, int step) {
      std::vector<Coordinates> members;
      for (int i = 0; i < count; ++i) members.push_back(layout.WithHolder(at, holder + i * step));
      Join(peers, kind, view, members);
    };
    if (at.tp == 0) join("tensor", TensorOf, &Coordinates::tp, layout.tp);
    const auto [shards, instances] = peers.shardings.others;
    if (at.cp == 0) join("context", ContextOf, &Coordinates::cp, layout.cp);
    if (holder < shards) join_holders("data", DataOf, instances, shards);
    if (holder % shards == 0) join_holders("shards", ShardsOf, shards, 1);
    if (module.model->num_experts() > 0) JoinExperts(peers, at);
    if (at.tp % sharing == 0) {
      join("key-value", KeyValueOf, &Coordinates::tp, sharing);
    }
    const int summed = module.model->sums_over_tp() || layout.cuts_rows() ? layout.tp : 1;
    if (at.tp % summed == 0) join("summed", SummedOf, &Coordinates::tp, summed);
    if (tied && at.pp == 0) {
      Coordinates last = at;
      last.pp = module.num_stages() - 1;
      Join(peers, "tied", TiedOf, {at, last});
    } else if (!tied || at.pp < module.num_stages() - 1) {
      Join(peers, "tied", TiedOf, {at});
    }
  });
}

void GroupTable::JoinExperts(const Peers& peers, const Coordinates& at) {
  const Layout& layout = peers.module.layout;
  const int rank = layout.StageRankOf(at);
  const auto join = [&](const char* kind, View view, int count, int step) {
    std::vector<Coordinates> members;
    for (int i = 0; i < count; ++i) members.push_back(layout.AtStageRank(rank + i * step, at.pp));
    Join(peers, kind, view, members);
  };
  const int group = layout.expert_group();
  if (rank % group == 0) join("expert", ExpertOf, group, 1);
  const int replica = layout.tp * layout.cp;
  const bool per_sample = peers.module.moe.balance == Balance::kSample;
  const int balanced = per_sample ? replica : replica * layout.lock_step_replicas();
  if (rank % balanced == 0) join("balance", BalanceOf, balanced, 1);
  const auto [shards, instances] = peers.shardings.experts;
  const int holder = layout.ExpertsAt(at).dp;
  if (holder < shards) join("expert-data", ExpertDataOf, instances, shards * group);
  if (holder % shards == 0) join("expert-shards", ExpertShardsOf, shards, group);
}

std::optional<Lane> GroupTable::LaneOf(View view) {
  for (const View separate : {DataOf, ShardsOf, ExpertDataOf, ExpertShardsOf, ContextOf}) {
    if (view == separate) return std::nullopt;
  }
  // Passes need these at once; all others are of gradients.
  const bool in_pass = view == TensorOf || view == ExpertOf || view == BalanceOf;
  return in_pass ? Lane::kCompute : Lane::kCollectives;
}

void GroupTable::OnDevice(int rank, const DeviceGroupMaker& make) {
  // A rank's views are its own: no lock while others are waited for.
  std::vector<Membership> mine;
  {
    const std::lock_guard lock(mutex_);
    mine = std::move(memberships_[rank]);
  }
  for (const Membership& membership : mine) {
    std::unique_lock lock(mutex_);
    auto& view = membership.view(groups_.at(membership.shard));
    lock.unlock();
    view = make(rank, std::move(view), membership.names, LaneOf(membership.view));
  }
}

ShardGroups GroupTable::Take(const ShardAddress& shard) {
  const std::lock_guard lock(mutex_);
  auto node = groups_.extract(Key{shard.module, shard.pp, shard.dp, shard.cp, shard.tp});
  if (node.empty()) {
    throw std::logic_error(ToString(shard) + ": its groups are unknown or were taken before");
  }
  return std::move(node.mapped());
}

}  // namespace troupe
