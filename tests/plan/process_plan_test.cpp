#include "plan/process_plan.hpp"

#include <stdexcept>

#include <catch2/catch.hpp>

using namespace troupe;

using Processes = std::vector<PlannedProcess>;

static ClusterConfig Cluster(std::vector<ClusterNode> nodes, int ranks,
                             ProcessesPer per = ProcessesPer::kNode) {
  ClusterConfig cluster;
  cluster.ranks = ranks;
  cluster.nodes = std::move(nodes);
  cluster.processes = per;
  return cluster;
}

/// "n0: 0 1 | n1: 2": the plan as one line.
static std::string Text(const ProcessPlan& plan) {
  std::string text;
  for (const auto& process : plan.processes()) {
    text += (text.empty() ? "" : " | ") + process.name + ":";
    for (const int rank : process.ranks) text += " " + std::to_string(rank);
  }
  return text;
}

TEST_CASE("one process per node takes the node's name and its ranks, numbered through") {
  const ProcessPlan plan(Cluster({{"a", "10.0.0.1", 2}, {"b", "", 3}, {"c", "", 1}}, 6));
  CHECK(plan.processes() ==
        Processes{{0, "a", 0, {0, 1}}, {1, "b", 1, {2, 3, 4}}, {2, "c", 2, {5}}});
  CHECK(plan.num_nodes() == 3);
  CHECK(plan.num_ranks() == 6);
}

TEST_CASE("one process per device counts the devices within each node") {
  const ProcessPlan plan(
      Cluster({{"n0", "", 2}, {"n1", "", 1}, {"n2", "", 2}}, 5, ProcessesPer::kDevice));
  CHECK(Text(plan) == "n0.d0: 0 | n0.d1: 1 | n1.d0: 2 | n2.d0: 3 | n2.d1: 4");
  CHECK(plan.num_nodes() == 3);
  std::vector<int> nodes;
  for (const auto& process : plan.processes()) nodes.push_back(process.node);
  CHECK(nodes == std::vector{0, 0, 1, 2, 2});
}

TEST_CASE("every rank has the home that lists it, and a rank outside the job has none") {
  const ProcessPlan plan(Cluster({{"a", "", 2}, {"b", "", 3}}, 5));
  for (const auto& process : plan.processes()) {
    for (const int rank : process.ranks) CHECK(plan.HomeOf(rank) == process.process);
  }
  CHECK_THROWS_WITH(plan.HomeOf(5), "rank 5 is not in the job, expected 0 to 4");
  CHECK_THROWS_AS(plan.HomeOf(-1), std::out_of_range);
}

TEST_CASE("a single process has all ranks, as has a cluster that names no node") {
  CHECK(Text(ProcessPlan::Single(3)) == "n0: 0 1 2");
  CHECK(Text(ProcessPlan(Cluster({}, 3))) == "n0: 0 1 2");
  CHECK(Text(ProcessPlan(Cluster({}, 2, ProcessesPer::kDevice))) == "n0.d0: 0 | n0.d1: 1");
  CHECK_THROWS_AS(ProcessPlan::Single(0), std::invalid_argument);
}

TEST_CASE("devices that do not add up to the ranks are refused with both numbers") {
  CHECK_THROWS_WITH(ProcessPlan(Cluster({{"a", "", 2}, {"b", "", 3}}, 6)),
                    "cluster.nodes: 2 nodes with 5 devices, expected cluster.ranks = 6");
  CHECK_THROWS_WITH(ProcessPlan(Cluster({{"a", "", 0}, {"b", "", 2}}, 2)),
                    "node a: expected at least 1 rank, got 0");
}

TEST_CASE("local processes share the ranks evenly whatever the nodes are") {
  const ClusterConfig cluster = Cluster({{"a", "", 6}, {"b", "", 2}}, 8);
  CHECK(Text(ProcessPlan::Local(cluster, 1)) == "n0: 0 1 2 3 4 5 6 7");
  CHECK(Text(ProcessPlan::Local(cluster, 4)) == "n0: 0 1 | n1: 2 3 | n2: 4 5 | n3: 6 7");
  CHECK(Text(ProcessPlan::Local(Cluster({}, 4), 2)) == "n0: 0 1 | n1: 2 3");
  for (const int bad : {3, 16, 0, -2}) {
    CHECK_THROWS_WITH(
        ProcessPlan::Local(cluster, bad),
        "expected 1, 2, 4 or 8 local processes for cluster.ranks = 8, got " + std::to_string(bad));
  }
}

TEST_CASE("as many local processes as the configuration has nodes are these nodes") {
  const std::vector<ClusterNode> nodes = {{"a", "", 3}, {"b", "", 1}};
  CHECK(Text(ProcessPlan::Local(Cluster(nodes, 4), 2)) == "a: 0 1 2 | b: 3");
  const ClusterConfig per_device = Cluster(nodes, 4, ProcessesPer::kDevice);
  CHECK(Text(ProcessPlan::Local(per_device, 2)) == "a: 0 1 2 | b: 3");
  CHECK(Text(ProcessPlan::Local(per_device, 4)) == "a.d0: 0 | a.d1: 1 | a.d2: 2 | b.d0: 3");
  CHECK(Text(ProcessPlan::Local(per_device, 1)) == "n0: 0 1 2 3");
  const ClusterConfig three = Cluster({{"a", "", 2}, {"b", "", 1}, {"c", "", 1}}, 4);
  CHECK_THROWS_WITH(ProcessPlan::Local(three, 5),
                    "expected 1, 2, 3 or 4 local processes for cluster.ranks = 4, got 5");
}

TEST_CASE("the names of many processes are cut short") {
  CHECK(ProcessPlan::Local(Cluster({}, 4), 2).Names() == "n0, n1");
  CHECK(ProcessPlan::Local(Cluster({}, 10), 10).Names() ==
        "n0, n1, n2, n3, n4, n5, n6, n7 and 2 more");
}
