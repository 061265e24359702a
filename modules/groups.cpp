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
    JoinAll({module, ShardingOf(config, module), GridOf(config, module), processes, plane, abort,
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
    groups_[shard].*view = std::move(communicators[i]);
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
    if (at.tp == 0) join("tensor", &ShardGroups::tensor, &Coordinates::tp, layout.tp);
    const int shards = peers.sharding.shards;
    if (at.cp == 0) join("context", &ShardGroups::context, &Coordinates::cp, layout.cp);
    if (holder < shards) join_holders("data", &ShardGroups::data, peers.sharding.instances, shards);
    if (holder % shards == 0) join_holders("shards", &ShardGroups::shards, shards, 1);
    if (at.tp % sharing == 0) {
      join("key-value", &ShardGroups::key_value, &Coordinates::tp, sharing);
    }
    const int summed = module.model->sums_over_tp() || layout.cuts_rows() ? layout.tp : 1;
    if (at.tp % summed == 0) join("summed", &ShardGroups::summed, &Coordinates::tp, summed);
    if (tied && at.pp == 0) {
      Coordinates last = at;
      last.pp = module.num_stages() - 1;
      Join(peers, "tied", &ShardGroups::tied, {at, last});
    } else if (!tied || at.pp < module.num_stages() - 1) {
      Join(peers, "tied", &ShardGroups::tied, {at});
    }
  });
}

std::optional<Lane> GroupTable::LaneOf(View view) {
  if (view == &ShardGroups::data || view == &ShardGroups::shards || view == &ShardGroups::context) {
    return std::nullopt;
  }
  // Passes need the sums of a tensor group at once; all others are of gradients.
  return view == &ShardGroups::tensor ? Lane::kCompute : Lane::kCollectives;
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
    auto& view = groups_.at(membership.shard).*membership.view;
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
