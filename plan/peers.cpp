#include "plan/peers.hpp"

#include <tuple>

namespace troupe {

std::map<int, std::vector<int>> PeersOf(const JobPlan& plan) {
  using Work = std::tuple<int, int, int>;  // stage, part along cp, part of the experts
  std::map<std::vector<Work>, std::vector<int>> alike;
  for (const auto& [rank, unused] : plan.lock_steps()) {
    std::vector<Work> work;
    for (const auto& [stage, shard] : plan.ShardsOn(rank)) {
      const Grid& grid = plan.GridOfStage(stage);
      const Coordinates at = grid.CoordinatesOf(rank);
      work.emplace_back(stage, at.cp, grid.layout().ExpertsAt(at).ep);
    }
    alike[work].push_back(rank);
  }
  std::map<int, std::vector<int>> peers;
  for (const auto& [work, ranks] : alike) {
    for (const int rank : ranks) {
      for (const int other : ranks) {
        if (other != rank) peers[rank].push_back(other);
      }
      peers[rank];
    }
  }
  return peers;
}

}  // namespace troupe
