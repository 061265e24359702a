#include "plan/mirrors.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "plan/job_plan.hpp"

namespace troupe {

namespace {

/// A job, its processes and the mirrors of its state.
struct Mirrored {
  explicit Mirrored(const std::vector<std::string>& overrides, std::int64_t replicas = 1)
      : plan(LoadConfig("configs/shapes.toml", overrides).config),
        processes(plan.config().cluster),
        mirrors(PlanMirrors(plan, processes, replicas)) {}

  /// Who holds the state of the shards of `module` that are first: "n0: made by n1, sent to n2".
  std::vector<std::string> HoldersOf(const std::string& module) const {
    std::map<ShardPlace, std::string> holders;
    for (const auto& [place, shard] : mirrors.made) {
      if (shard.module != module) continue;
      holders[{shard.rank, place.second}] += ", made by " + NameOf(processes.HomeOf(place.first));
      CHECK(shard.pp == plan.ShardsOn(place.first).at(place.second).pp);
      CHECK(shard.tp == plan.ShardsOn(place.first).at(place.second).tp);
    }
    for (const MirrorPlan::Sent& sent : mirrors.sent) {
      for (const ShardPlace& place : sent.shards) {
        CHECK(processes.HomeOf(place.first) == sent.process);
        if (plan.ShardsOn(place.first).at(place.second).module != module) continue;
        holders[place] += ", sent to " + NameOf(sent.holder);
      }
    }
    std::vector<std::string> texts;
    for (const auto& [place, text] : holders) {
      texts.push_back(NameOf(processes.HomeOf(place.first)) + ":" + text.substr(1));
    }
    return texts;
  }
  const std::string& NameOf(ProcessId process) const { return processes.Of(process).name; }

  JobPlan plan;
  ProcessPlan processes;
  MirrorPlan mirrors;
};

using Texts = std::vector<std::string>;

}  // namespace

// The encoder of shapes.toml has dp 4 on ranks 4 to 7, the language model tp 2 pp 2 on 0 to 3.
TEST_CASE("replicas on other nodes make mirrors; the others are sent", "[plan]") {
  const Mirrored two({"cluster.nodes=2"});
  CHECK(two.HoldersOf("vision") == Texts{"n1: sent to n0"});  // all replicas are on one node
  CHECK(two.HoldersOf("language").size() == 4);
  const Mirrored four({"cluster.nodes=4"});
  CHECK(four.HoldersOf("vision") == Texts{"n2: made by n3"});
  CHECK(four.HoldersOf("language") ==
        Texts{"n0: sent to n1", "n0: sent to n1", "n1: sent to n2", "n1: sent to n2"});
  const Mirrored more({"cluster.nodes=4"}, 2);
  CHECK(more.HoldersOf("vision") == Texts{"n2: made by n3, sent to n0"});
  CHECK(Mirrored({"cluster.nodes=4"}, 9).HoldersOf("vision").front() ==
        "n2: made by n3, sent to n0, sent to n1");
  CHECK(Mirrored({"cluster.nodes=4"}, 0).HoldersOf("vision").empty());
}

TEST_CASE("replicas of a node come before others of that node alone", "[plan]") {
  const Mirrored one({"cluster.nodes=[{devices=8}]", "cluster.processes=device"});
  const Texts vision = one.HoldersOf("vision");
  REQUIRE(vision.size() == 1);
  CHECK(vision[0] == one.NameOf(4) + ": made by " + one.NameOf(5));
}

TEST_CASE("parts of the optimizer's state have mirrors of their own", "[plan]") {
  const Texts all = {"n2: sent to n3", "n2: sent to n3", "n3: sent to n0", "n3: sent to n0"};
  CHECK(Mirrored({"cluster.nodes=4", "optimizer.shard=data"}).HoldersOf("vision") == all);
  CHECK(Mirrored({"cluster.nodes=4", "optimizer.shard=data", "optimizer.instances=2",
                  "modules.language.optimizer.instances=1"})
            .HoldersOf("vision") == Texts{"n2: made by n3", "n2: made by n3"});
}

TEST_CASE("ranks along cp hold the same state, those with other experts do not", "[plan]") {
  const std::vector<std::string> nodes = {"cluster.nodes=8", "modules.language.layout={cp=4}"};
  CHECK(Mirrored(nodes).HoldersOf("language") == Texts{"n0: made by n1"});
  const Mirrored experts({"cluster.nodes=8", "modules.language.layout={dp=4, ep=2}",
                          "modules.language.experts=4", "modules.language.expert_hidden=32"});
  CHECK(experts.HoldersOf("language") == Texts{"n0: made by n2", "n1: made by n3"});
}

TEST_CASE("the mirrors of a state are in other processes and on as many nodes as possible",
          "[plan]") {
  const std::string layout =
      GENERATE("modules.vision.layout={dp=4}", "optimizer.shard=data",
               "modules.language.layout={dp=4}", "modules.language.layout={tp=4}");
  const int nodes = GENERATE(1, 2, 4, 8);
  const std::string each = GENERATE("cluster.processes=node", "cluster.processes=device");
  const int replicas = GENERATE(1, 2, 3, 9);
  INFO(layout << ", " << nodes << " nodes, " << each << ", " << replicas << " replicas");
  const Mirrored mirrored({"cluster.nodes=" + std::to_string(nodes), each, layout}, replicas);
  const ProcessPlan& processes = mirrored.processes;
  std::map<ShardPlace, std::set<ProcessId>> holders;
  std::size_t num_mirrors = 0;
  for (const auto& [replica, first] : mirrored.mirrors.made) {
    holders[{first.rank, replica.second}].insert(processes.HomeOf(replica.first));
    ++num_mirrors;
  }
  for (const MirrorPlan::Sent& sent : mirrored.mirrors.sent) {
    for (const ShardPlace& place : sent.shards) holders[place].insert(sent.holder);
    num_mirrors += sent.shards.size();
  }
  const int others = processes.num_processes() - 1;
  CHECK(holders.empty() == (others == 0));
  for (const auto& [place, held_by] : holders) {
    const ProcessId own = processes.HomeOf(place.first);
    std::set<int> other_nodes;
    for (const ProcessId holder : held_by) {
      CHECK(holder != own);
      if (processes.Of(holder).node != processes.Of(own).node) {
        other_nodes.insert(processes.Of(holder).node);
      }
    }
    CHECK(std::ssize(held_by) == std::min(replicas, others));
    CHECK(std::ssize(other_nodes) == std::min(replicas, nodes - 1));
    num_mirrors -= held_by.size();
  }
  CHECK(num_mirrors == 0);  // no process holds a state twice
}

TEST_CASE("each process of equal nodes holds the mirrors of another", "[plan]") {
  const Mirrored mirrored({"cluster.nodes=4", "cluster.processes=device", "optimizer.shard=data"});
  std::set<ProcessId> holders;
  for (const MirrorPlan::Sent& sent : mirrored.mirrors.sent) holders.insert(sent.holder);
  CHECK(holders.size() == 8);
}

}  // namespace troupe
