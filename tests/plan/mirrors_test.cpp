#include "plan/mirrors.hpp"

#include <map>
#include <set>

#include <catch2/catch.hpp>

namespace troupe {

static ProcessPlan PlanOf(int nodes, int per_node, ProcessesPer per) {
  ClusterConfig cluster;
  cluster.ranks = nodes * per_node;
  cluster.processes = per;
  for (int node = 0; node < nodes; ++node) {
    cluster.nodes.push_back({"n" + std::to_string(node), "", per_node});
  }
  return ProcessPlan(cluster);
}

TEST_CASE("the state of a process is mirrored on other nodes", "[plan]") {
  const ProcessPlan plan = PlanOf(3, 2, ProcessesPer::kDevice);
  REQUIRE(plan.num_processes() == 6);
  for (const std::int64_t replicas : {1, 2, 4}) {
    std::map<ProcessId, std::set<ProcessId>> holders;
    std::map<ProcessId, int> held;
    for (const MirrorOf& mirror : PlanMirrors(plan, replicas)) {
      CHECK(plan.Of(mirror.holder).node != plan.Of(mirror.process).node);
      CHECK(holders[mirror.process].insert(mirror.holder).second);
      ++held[mirror.holder];
    }
    for (ProcessId process = 0; process < 6; ++process) {
      CHECK(std::ssize(holders[process]) == replicas);
      CHECK(held[process] == replicas);
    }
  }
}

TEST_CASE("a job on one machine mirrors among its processes", "[plan]") {
  const ProcessPlan plan = PlanOf(1, 4, ProcessesPer::kDevice);
  const auto mirrors = PlanMirrors(plan, 1);
  CHECK(mirrors == std::vector<MirrorOf>{{1, 0}, {2, 1}, {3, 2}, {0, 3}});
  CHECK(PlanMirrors(plan, 9).size() == 12);
  CHECK(PlanMirrors(ProcessPlan::Single(4), 2).empty());
  CHECK(PlanMirrors(plan, 0).empty());
}

}  // namespace troupe
