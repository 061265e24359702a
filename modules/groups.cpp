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

using View = std::unique_ptr<Communicator> ShardGroups::*;

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

/// A module's shards by coordinates, as its groups are handed out.
class ModuleShards {
 public:
  ModuleShards(const Config& config, const ModuleConfig& module, const ProcessPlan& processes,
               DataPlane* plane, std::shared_ptr<AbortSignal> abort, GroupWaits* waits)
      : name_(module.name),
        layout_(module.layout),
        grid_(GridOf(config, module)),
        processes_(processes),
        plane_(plane),
        abort_(std::move(abort)),
        waits_(waits) {
    shards_.resize(static_cast<std::size_t>(layout_.num_ranks() * module.chunks));
  }

  ShardGroups& At(const Coordinates& at) {
    return shards_[static_cast<std::size_t>(
        ((at.pp * layout_.dp + at.dp) * layout_.cp + at.cp) * layout_.tp + at.tp)];
  }

  /// Who is in which group, in the order of the calls of Join: rank, shard, view, names.
  struct Joined {
    int rank = 0;
    Coordinates at;
    View view = nullptr;
    GroupNames names;
  };
  std::vector<Joined>& joined() { return joined_; }

  /// Makes one group of `kind` and gives member i its view, if it lives here.
  void Join(const char* kind, View view, const std::vector<Coordinates>& members) {
    std::vector<ProcessId> homes;
    std::vector<std::string> devices;
    for (const Coordinates& at : members) {
      homes.push_back(processes_.HomeOf(RankOf(at)));
      devices.push_back(ToString(DeviceActor(RankOf(at))));
    }
    const ProcessId self = plane_ == nullptr ? 0 : plane_->self();
    if (std::find(homes.begin(), homes.end(), self) == homes.end()) return;
    const Coordinates& first = members.front();
    const std::string name = std::string(kind) + " " + name_ + ".s" + std::to_string(first.pp) +
                             " dp" + std::to_string(first.dp) + " cp" + std::to_string(first.cp) +
                             " tp" + std::to_string(first.tp);
    auto communicators = MakeGroup(name, homes, plane_, abort_, waits_, devices);
    for (std::size_t i = 0; i < members.size(); ++i) {
      At(members[i]).*view = std::move(communicators[i]);
      if (members.size() == 1 || homes[i] != self) continue;
      joined_.push_back({RankOf(members[i]), members[i], view, {waits_, name, devices}});
    }
  }

 private:
  int RankOf(Coordinates at) const {
    at.pp %= layout_.pp;
    return grid_.RankAt(at);
  }

  std::string name_;
  Layout layout_;
  Grid grid_;
  const ProcessPlan& processes_;
  DataPlane* plane_;
  std::shared_ptr<AbortSignal> abort_;
  GroupWaits* waits_;
  std::vector<ShardGroups> shards_;
  std::vector<Joined> joined_;
};

/// `count` coordinates from `at` on along one axis.
std::vector<Coordinates> Along(Coordinates at, int Coordinates::*axis, int count) {
  std::vector<Coordinates> members;
  for (int i = 0; i < count; ++i, ++(at.*axis)) members.push_back(at);
  return members;
}

void JoinAll(ModuleShards& shards, const ModuleConfig& module) {
  const Layout& layout = module.layout;
  const int sharing = KeyValueSharing(module);
  const bool tied = module.head_tied_across_stages();
  ForEachShard(module, [&](const Coordinates& at) {
    if (at.tp == 0) {
      shards.Join("tensor", &ShardGroups::tensor, Along(at, &Coordinates::tp, layout.tp));
    }
    if (at.dp == 0) shards.Join("data", &ShardGroups::data, Along(at, &Coordinates::dp, layout.dp));
    if (at.tp % sharing == 0) {
      shards.Join("key-value", &ShardGroups::key_value, Along(at, &Coordinates::tp, sharing));
    }
    if (tied && at.pp == 0) {
      Coordinates last = at;
      last.pp = module.num_stages() - 1;
      shards.Join("tied", &ShardGroups::tied, {at, last});
    } else if (!tied || at.pp < module.num_stages() - 1) {
      shards.Join("tied", &ShardGroups::tied, {at});
    }
  });
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
    ModuleShards shards(config, module, processes, plane, abort, waits);
    JoinAll(shards, module);
    ForEachShard(module, [&](const Coordinates& at) {
      groups_.emplace(Key{module.name, at.pp, at.dp, at.cp, at.tp}, std::move(shards.At(at)));
    });
    for (auto& joined : shards.joined()) {
      const Coordinates& at = joined.at;
      memberships_[joined.rank].push_back(
          {{module.name, at.pp, at.dp, at.cp, at.tp}, joined.view, std::move(joined.names)});
    }
  }
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
    // Passes need the sums of a tensor group at once; all others are of gradients.
    const bool within_passes = membership.view == &ShardGroups::tensor;
    view = make(rank, std::move(view), membership.names,
                within_passes ? Lane::kCompute : Lane::kCollectives);
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
