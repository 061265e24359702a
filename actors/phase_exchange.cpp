#include <algorithm>

#include "actors/phase_actor.hpp"
#include "layout/at.hpp"

namespace troupe {

std::size_t PlaceOf(int rank, const std::vector<int>& ranks) {
  return static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin());
}

namespace {

/// The one of `holders` that sends rows to `rank`: itself if it holds them, else the one at its
/// place.
int SenderTo(int rank, std::size_t place, const std::vector<int>& holders) {
  const bool holds = std::ranges::find(holders, rank) != holders.end();
  return holds ? rank : holders[place % holders.size()];
}

/// Every rank of a destination shard gets all rows of the shard. `source_ranks` and
/// `destination_ranks` are by shard.
ExchangePlan PlanFor(const Route& route, const std::vector<std::vector<int>>& source_ranks,
                     const std::vector<std::vector<int>>& destination_ranks,
                     const std::vector<int>& ranks) {
  ExchangePlan plan;
  plan.rows_out.resize(ranks.size());
  for (std::size_t shard = 0; shard < destination_ranks.size(); ++shard) {
    const auto& receivers = destination_ranks[shard];
    for (std::size_t place = 0; place < receivers.size(); ++place) {
      const std::size_t to = PlaceOf(receivers[place], ranks);
      plan.rows_out[to] = route.destination_rows[shard];
      for (const Transfer& transfer : route.transfers) {
        if (static_cast<std::size_t>(transfer.destination) != shard) continue;
        const auto& holders = source_ranks[At(transfer.source)];
        const std::size_t from = PlaceOf(SenderTo(receivers[place], place, holders), ranks);
        plan.moves.push_back({static_cast<int>(from), static_cast<int>(to), transfer.source_rows,
                              transfer.destination_rows});
      }
    }
  }
  std::ranges::stable_sort(plan.moves, {}, &RowMove::destination);
  return plan;
}

/// The ranks of a stage, replica by replica, in as many equal groups as there are shards.
std::vector<std::vector<int>> RanksByShard(const Grid& grid, int pp, std::size_t num_shards) {
  std::vector<int> ranks;
  for (int dp = 0; dp < grid.layout().dp; ++dp) {
    for (const int rank : grid.StageRanks(pp, dp)) ranks.push_back(rank);
  }
  std::vector<std::vector<int>> shards(num_shards);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    shards[i / (ranks.size() / num_shards)].push_back(ranks[i]);
  }
  return shards;
}

}  // namespace

ExchangePlan ForwardExchange(const Route& route, const Grid& encoder, const Grid& language,
                             const std::vector<int>& ranks) {
  return PlanFor(route, RanksByShard(encoder, encoder.layout().pp - 1, route.source_rows.size()),
                 RanksByShard(language, 0, route.destination_rows.size()), ranks);
}

ExchangePlan BackwardExchange(const Route& route, const Grid& encoder, const Grid& language,
                              const std::vector<int>& ranks) {
  return PlanFor(Inverse(route), RanksByShard(language, 0, route.destination_rows.size()),
                 RanksByShard(encoder, encoder.layout().pp - 1, route.source_rows.size()), ranks);
}

}  // namespace troupe
