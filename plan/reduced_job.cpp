#include "plan/reduced_job.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include "configs/checks.hpp"
#include "configs/report.hpp"
#include "layout/at.hpp"
#include "layout/text.hpp"
#include "plan/job_plan.hpp"

namespace troupe {
namespace {

/// Modules on the same ranks.
struct Pool {
  std::vector<std::size_t> modules;  ///< by index in Config::modules
  int first_rank = 0;
  std::int64_t size = 0;            ///< ranks, in the whole job
  std::vector<std::int64_t> sizes;  ///< that it can have, ascending; `size` is the last
  bool has_sink = false;
};

std::int64_t Sum(const auto& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
}

/// A share of its ranks that a pool keeps, as a fraction.
struct Share {
  std::int64_t ranks = 1;
  std::int64_t of = 1;
  bool Is(const Pool& pool, std::int64_t size) const { return size * of >= ranks * pool.size; }
  friend bool operator<(const Share& a, const Share& b) { return a.ranks * b.of < b.ranks * a.of; }
};

std::int64_t RanksOfReplica(const ModuleConfig& module) {
  return RanksOf(module.layout) / module.layout.dp;
}

bool DividesBatch(const Config& whole, const ModuleConfig& sink, std::int64_t ranks) {
  const std::int64_t dp = ranks / RanksOfReplica(sink);
  return whole.global_batch() % (whole.schedule.micro_batch_size * dp) == 0;
}

/// The pools of a configuration, in the order of their first ranks.
std::vector<Pool> PoolsOf(const Config& whole) {
  std::vector<Pool> pools;
  for (std::size_t i = 0; i < whole.modules.size(); ++i) {
    const ModuleConfig& module = whole.modules[i];
    if (module.inline_in) continue;
    const auto same = [&](const Pool& pool) {
      return HaveSameRanks(module, whole.modules[pool.modules.front()]);
    };
    const auto pool = std::ranges::find_if(pools, same);
    if (pool != pools.end()) {
      pool->modules.push_back(i);
    } else {
      pools.push_back({.modules = {i},
                       .first_rank = *std::ranges::min_element(module.ranks),
                       .size = std::ssize(module.ranks),
                       .sizes = {}});
    }
  }
  std::ranges::sort(pools, {}, &Pool::first_rank);
  const ModuleConfig* const sink = whole.FindSink();
  for (Pool& pool : pools) {
    std::int64_t step = 1;
    for (const std::size_t i : pool.modules) {
      step = std::lcm(step, RanksOfReplica(whole.modules[i]));
      pool.has_sink = pool.has_sink || &whole.modules[i] == sink;
    }
    for (std::int64_t size = step; size <= pool.size; size += step) {
      if (!pool.has_sink || DividesBatch(whole, *sink, size)) pool.sizes.push_back(size);
    }
  }
  return pools;
}

/// The smallest sizes with which every pool keeps `share` of its ranks.
std::vector<std::int64_t> LeastSizes(const std::vector<Pool>& pools, const Share& share) {
  std::vector<std::int64_t> least;
  for (const Pool& pool : pools) {
    least.push_back(
        *std::ranges::find_if(pool.sizes, [&](std::int64_t size) { return share.Is(pool, size); }));
  }
  return least;
}

/// Returns larger `sizes` that use more of `ranks`. The pool with the sink grows first, then the others
/// in their order.
std::vector<std::int64_t> Enlarged(const std::vector<Pool>& pools, std::int64_t ranks,
                                   std::vector<std::int64_t> sizes) {
  std::int64_t left = ranks - Sum(sizes);
  for (const bool has_sink : {true, false}) {
    for (std::size_t i = 0; i < pools.size(); ++i) {
      if (pools[i].has_sink != has_sink) continue;
      const std::int64_t most = sizes[i] + left;
      const auto above = std::ranges::upper_bound(pools[i].sizes, most);
      left = most - *std::prev(above);
      sizes[i] = *std::prev(above);
    }
  }
  return sizes;
}

void DivideInstances(std::int64_t& instances, std::int64_t replicas) {
  instances = std::gcd(instances, replicas);
}

/// The configuration with these sizes of the pools, but not yet its nodes.
Config WithSizes(const Config& whole, const std::vector<Pool>& pools,
                 const std::vector<std::int64_t>& sizes) {
  Config config = whole;
  int next = 0;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    std::vector<int> ranks(static_cast<std::size_t>(sizes[i]));
    std::iota(ranks.begin(), ranks.end(), next);
    next += static_cast<int>(sizes[i]);
    for (const std::size_t index : pools[i].modules) {
      ModuleConfig& module = config.modules[index];
      module.ranks = ranks;
      module.layout.dp = static_cast<int>(sizes[i] / RanksOfReplica(module));
      // The instances of an optimizer divide the replicas.
      const std::int64_t holders = module.layout.num_holders();
      auto& own = module.optimizer.instances;
      DivideInstances(own ? *own : config.optimizer.instances, holders);
    }
  }
  config.cluster.ranks = next;
  const std::int64_t samples = config.schedule.micro_batch_size * config.FindSink()->layout.dp;
  config.schedule.microbatches = whole.global_batch() / samples;
  return config;
}

/// Why a configuration is not legal; "" if it is.
std::string WhyIllegal(const Config& config) {
  Report report("");
  CheckConfig(config, report);
  if (!report.errors().empty()) return report.errors().front().text;
  try {
    const JobPlan plan(config);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// The ranks that each node can have: none if one of its processes is absent.
std::vector<int> RoomOn(const ProcessPlan& planned, const std::vector<ProcessId>& present) {
  std::vector<int> room;
  for (int node = 0; node < planned.num_nodes(); ++node) {
    int ranks = 0;
    bool whole = true;
    for (const PlannedProcess& process : planned.OfNode(node)) {
      ranks += static_cast<int>(std::ssize(process.ranks));
      whole = whole && std::ranges::binary_search(present, process.process);
    }
    room.push_back(whole ? ranks : 0);
  }
  return room;
}

/// Spreads the ranks over the nodes of the whole job, in their order. Returns the ranks on each.
std::vector<int> Spread(const Config& whole, const std::vector<int>& room, Config& config) {
  std::vector<int> on;
  int left = config.cluster.ranks;
  config.cluster.nodes.clear();
  for (std::size_t node = 0; node < room.size(); ++node) {
    on.push_back(std::min(room[node], left));
    left -= on.back();
    if (on.back() == 0) continue;
    const auto& nodes = whole.cluster.nodes;
    ClusterNode kept =
        nodes.size() == room.size() ? nodes[node] : ClusterNode{DefaultNodeName(node), "", 0};
    kept.devices = on.back();
    config.cluster.nodes.push_back(std::move(kept));
  }
  // Not more than a node has. Its ranks still share one GPU.
  int& sharing = config.cluster.ranks_per_gpu;
  sharing = std::min(sharing, *std::ranges::max_element(on));
  return on;
}

/// The present processes, with the ranks that their nodes have now.
ProcessPlan PlanOf(const ProcessPlan& planned, const std::vector<ProcessId>& present,
                   std::vector<int> on) {
  std::vector<int> ranks;
  for (const ProcessId process : present) {
    const PlannedProcess& before = planned.Of(process);
    int& left = on[At(before.node)];
    ranks.push_back(std::min(static_cast<int>(std::ssize(before.ranks)), left));
    left -= ranks.back();
  }
  return planned.Part(present, ranks);
}

}  // namespace

Reduction ReduceJob(const Config& whole, const ProcessPlan& planned,
                    const std::vector<ProcessId>& present) {
  if (std::ssize(present) == planned.num_processes()) {
    return {ReducedJob{whole, planned}, ""};
  }
  const std::vector<int> room = RoomOn(planned, present);
  const std::int64_t ranks = Sum(room);
  const std::vector<Pool> pools = PoolsOf(whole);
  std::set<Share> shares;
  for (const Pool& pool : pools) {
    for (const std::int64_t size : pool.sizes) shares.insert({size, pool.size});
  }
  std::string why;
  std::int64_t needed = 0;
  for (auto share = shares.rbegin(); share != shares.rend(); ++share) {
    const std::vector<std::int64_t> least = LeastSizes(pools, *share);
    needed = Sum(least);
    if (needed > ranks) continue;
    for (const auto& sizes : {Enlarged(pools, ranks, least), least}) {
      Config config = WithSizes(whole, pools, sizes);
      const std::vector<int> on = Spread(whole, room, config);
      const std::string problem = WhyIllegal(config);
      if (problem.empty()) {
        ProcessPlan processes = PlanOf(planned, present, on);
        return {ReducedJob{std::move(config), std::move(processes)}, ""};
      }
      if (why.empty()) why = problem;
    }
  }
  if (why.empty()) {
    why = "it needs at least " + Counted(needed, "rank") + ", and " + std::to_string(ranks) +
          (ranks == 1 ? " is left" : " are left");
  }
  return {std::nullopt, why};
}

std::string ReductionText(const Config& whole, const Config& reduced) {
  std::string text =
      std::to_string(reduced.cluster.ranks) + " of " + Counted(whole.cluster.ranks, "rank");
  for (std::size_t i = 0; i < whole.modules.size(); ++i) {
    const ModuleConfig& module = whole.modules[i];
    const int dp = reduced.modules[i].layout.dp;
    if (module.inline_in || dp == module.layout.dp) continue;
    text += ", " + module.name + " dp " + std::to_string(dp) + " of " +
            std::to_string(module.layout.dp);
  }
  const std::int64_t microbatches = reduced.schedule.microbatches;
  if (microbatches == whole.schedule.microbatches) return text;
  return text + ", " + std::to_string(microbatches) + " microbatches in place of " +
         std::to_string(whole.schedule.microbatches);
}

}  // namespace troupe
