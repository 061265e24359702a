#include "modules/groups.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

namespace troupe {
namespace {

using View = std::unique_ptr<Communicator> ShardGroups::*;

/// Calls `visit` with every coordinate of `layout`, pp slowest, tp fastest.
template <class Visit>
void ForEachShard(const Layout& layout, Visit visit) {
  for (int pp = 0; pp < layout.pp; ++pp) {
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
  ModuleShards(const Layout& layout, std::shared_ptr<AbortSignal> abort)
      : layout_(layout), abort_(std::move(abort)) {
    shards_.resize(static_cast<std::size_t>(layout.num_ranks()));
  }

  ShardGroups& At(const Coordinates& at) {
    return shards_[static_cast<std::size_t>(
        ((at.pp * layout_.dp + at.dp) * layout_.cp + at.cp) * layout_.tp + at.tp)];
  }

  /// Makes one group and gives member i its view.
  void Join(View view, const std::vector<Coordinates>& members) {
    auto communicators = MakeLocalGroup(static_cast<int>(members.size()), abort_);
    for (std::size_t i = 0; i < members.size(); ++i) {
      At(members[i]).*view = std::move(communicators[i]);
    }
  }

 private:
  Layout layout_;
  std::shared_ptr<AbortSignal> abort_;
  std::vector<ShardGroups> shards_;
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
  const bool tied = module.kind == ModuleKind::kLlama && module.llama.tied_head && layout.pp > 1;
  ForEachShard(layout, [&](const Coordinates& at) {
    if (at.tp == 0) shards.Join(&ShardGroups::tensor, Along(at, &Coordinates::tp, layout.tp));
    if (at.dp == 0) shards.Join(&ShardGroups::data, Along(at, &Coordinates::dp, layout.dp));
    if (at.tp % sharing == 0) {
      shards.Join(&ShardGroups::key_value, Along(at, &Coordinates::tp, sharing));
    }
    if (tied && at.pp == 0) {
      Coordinates last = at;
      last.pp = layout.pp - 1;
      shards.Join(&ShardGroups::tied, {at, last});
    } else if (!tied || at.pp < layout.pp - 1) {
      shards.Join(&ShardGroups::tied, {at});
    }
  });
}

}  // namespace

int KeyValueSharing(const ModuleConfig& module) {
  if (module.kind != ModuleKind::kLlama) return 1;
  const auto kv_heads = static_cast<int>(module.llama.kv_heads);
  const int tp = module.layout.tp;
  return tp > kv_heads && kv_heads > 0 && tp % kv_heads == 0 ? tp / kv_heads : 1;
}

GroupTable::GroupTable(const Config& config, const std::shared_ptr<AbortSignal>& abort) {
  for (const ModuleConfig& module : config.modules) {
    if (module.inline_in) continue;
    ModuleShards shards(module.layout, abort);
    JoinAll(shards, module);
    ForEachShard(module.layout, [&](const Coordinates& at) {
      groups_.emplace(Key{module.name, at.pp, at.dp, at.cp, at.tp}, std::move(shards.At(at)));
    });
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
