#include "plan/reduced_job.hpp"

#include <catch2/catch.hpp>

#include "configs/checks.hpp"
#include "configs/loader.hpp"
#include "plan/job_plan.hpp"

namespace troupe {
namespace {

/// A job on nodes n0, n1, ... with that many ranks each.
Config On(const std::string& file, int nodes, std::vector<std::string> keys) {
  keys.push_back("cluster.nodes=" + std::to_string(nodes));
  return LoadConfig("configs/" + file, keys).config;
}

/// The language model alone, with the vision encoder inline, tp 2.
Config Inline(int dp, int microbatches, int samples = 1) {
  const int ranks = 2 * dp;
  return On("shapes_inline.toml", dp,
            {"cluster.ranks=" + std::to_string(ranks),
             "modules.language.ranks=0-" + std::to_string(ranks - 1),
             "modules.language.layout={tp=2, dp=" + std::to_string(dp) + "}",
             "schedule.microbatches=" + std::to_string(microbatches),
             "schedule.micro_batch_size=" + std::to_string(samples)});
}

Reduction Reduce(const Config& whole, const std::vector<ProcessId>& present) {
  return ReduceJob(whole, ProcessPlan(whole.cluster), present);
}

std::string Homes(const ProcessPlan& plan) {
  std::string text;
  for (const PlannedProcess& process : plan.processes()) {
    text += (text.empty() ? "" : " | ") + process.name + ":";
    for (const int rank : process.ranks) text += " " + std::to_string(rank);
  }
  return text;
}

}  // namespace

TEST_CASE("a job that loses a node has fewer replicas and the same global batch", "[plan]") {
  const Config whole = Inline(3, 4);
  const auto [job, why] = Reduce(whole, {0, 2});
  REQUIRE(job);
  CHECK(job->config.Find("language")->layout.dp == 2);
  CHECK(job->config.Find("language")->ranks == std::vector{0, 1, 2, 3});
  CHECK(job->config.cluster.ranks == 4);
  CHECK(job->config.schedule.microbatches == 6);
  CHECK(job->config.global_batch() == whole.global_batch());
  CHECK(Homes(job->processes) == "n0: 0 1 | n2: 2 3");
  CHECK(job->processes.num_nodes() == 2);
  CHECK(ReductionText(whole, job->config) ==
        "4 of 6 ranks, language dp 2 of 3, 6 microbatches in place of 4");
}

TEST_CASE("a global batch that does not divide costs more replicas", "[plan]") {
  // 4 samples: 3 replicas cannot share them.
  const auto [job, why] = Reduce(Inline(4, 1), {0, 1, 3});
  REQUIRE(job);
  CHECK(job->config.Find("language")->layout.dp == 2);
  CHECK(job->config.schedule.microbatches == 2);
  CHECK(Homes(job->processes) == "n0: 0 1 | n1: 2 3 | n3:");
}

TEST_CASE("the ranks that are left are divided among modules", "[plan]") {
  const Config whole =
      On("shapes.toml", 3,
         {"cluster.ranks=12", "modules.vision.ranks=4-11", "modules.vision.layout={dp=8}"});
  const auto [job, why] = Reduce(whole, {0, 1});
  REQUIRE(job);
  CHECK(job->config.Find("language")->ranks == std::vector{0, 1, 2, 3});
  CHECK(job->config.Find("vision")->ranks == std::vector{4, 5, 6, 7});
  CHECK(job->config.Find("vision")->layout.dp == 4);
  CHECK(job->config.schedule.microbatches == whole.schedule.microbatches);
  // With the same share of both, the module that defines the microbatch comes first.
  const auto small = Reduce(On("shapes.toml", 4, {}), {0, 1, 2});
  REQUIRE(small.job);
  CHECK(Homes(small.job->processes) == "n0: 0 1 | n1: 2 3 | n2: 4 5");
  CHECK(small.job->config.Find("vision")->layout.dp == 2);
}

TEST_CASE("a job that cannot be smaller says why", "[plan]") {
  const auto reduction = Reduce(On("shapes_2node.toml", 2, {}), {0});
  CHECK_FALSE(reduction.job);
  CHECK(reduction.why_not == "it needs at least 5 ranks, and 4 are left");
}

TEST_CASE("modules on the same ranks shrink together", "[plan]") {
  const Config whole = On("shapes_colocated.toml", 2, {});
  const auto [job, why] = Reduce(whole, {0});
  const ModuleConfig& language = *whole.Find("language");
  const ModuleConfig& vision = *whole.Find("vision");
  REQUIRE(HaveSameRanks(language, vision));
  REQUIRE(job);
  CHECK(job->config.Find("language")->layout.dp * 2 == language.layout.dp);
  CHECK(job->config.Find("vision")->layout.dp * 2 == vision.layout.dp);
  CHECK(job->config.Find("vision")->ranks == job->config.Find("language")->ranks);
}

TEST_CASE("experts keep the ranks that they are divided over", "[plan]") {
  const Config whole =
      On("shapes_experts.toml", 6,
         {"cluster.ranks=12", "modules.language.ranks=0-7",
          "modules.language.layout={cp=2, dp=4, ep=4}", "modules.vision.ranks=8-11"});
  const auto [job, why] = Reduce(whole, {0, 1, 2, 3, 5});
  REQUIRE(job);
  // Three quarters of each would be language dp 3, but 4 does not divide 2 * 3 ranks.
  CHECK(job->config.Find("language")->layout.dp == 4);
  CHECK(job->config.Find("vision")->layout.dp == 2);
}

TEST_CASE("the instances of an optimizer divide the replicas that are left", "[plan]") {
  Config whole = Inline(4, 3);
  whole.optimizer.shard = OptimizerShard::kData;
  whole.optimizer.instances = 2;
  const auto three = Reduce(whole, {0, 1, 3});
  REQUIRE(three.job);
  CHECK(three.job->config.Find("language")->layout.dp == 3);
  CHECK(three.job->config.optimizer.instances == 1);
  const auto two = Reduce(whole, {0, 1});
  REQUIRE(two.job);
  CHECK(two.job->config.optimizer.instances == 2);
}

TEST_CASE("a node with a process less has no ranks, but its other processes stay", "[plan]") {
  Config whole = Inline(3, 4);
  whole.cluster.processes = ProcessesPer::kDevice;
  const auto [job, why] = Reduce(whole, {0, 1, 3, 4, 5});
  REQUIRE(job);
  CHECK(Homes(job->processes) == "n0.d0: 0 | n0.d1: 1 | n1.d1: | n2.d0: 2 | n2.d1: 3");
  CHECK(job->config.cluster.nodes.size() == 2);
  CHECK(job->config.cluster.nodes.back().name == "n2");
}

TEST_CASE("ranks of a node that share a GPU still do", "[plan]") {
  Config whole = Inline(3, 4);
  whole.cluster.backend = Backend::kCuda;
  whole.cluster.ranks_per_gpu = 2;
  const auto [job, why] = Reduce(whole, {0, 2});
  INFO(why);
  REQUIRE(job);
  for (const int rank : {0, 1, 2, 3}) CHECK(GpuOf(job->config.cluster, rank) == 0);
}

TEST_CASE("all processes make the whole job", "[plan]") {
  const Config whole = Inline(3, 4);
  const auto [job, why] = Reduce(whole, {0, 1, 2});
  REQUIRE(job);
  CHECK(job->config == whole);
}

TEST_CASE("every part of every job is legal, or says why there is none", "[plan]") {
  int reduced = 0;
  for (const char* file : {"shapes.toml", "shapes_colocated.toml", "shapes_colocated_uneven.toml",
                           "shapes_inline.toml", "shapes_mixed.toml", "shapes_two_encoders.toml",
                           "shapes_experts.toml", "synthetic_8stages.toml"}) {
    const Config plain = LoadConfig(std::string("configs/") + file, {}).config;
    for (const int nodes : {2, 3, 4, 8}) {
      if (plain.cluster.ranks % nodes != 0) continue;
      const Config whole = On(file, nodes, {});
      const ProcessPlan planned(whole.cluster);
      for (unsigned set = 0; set < (1U << (nodes - 1)); ++set) {
        std::vector<ProcessId> present = {0};
        for (int node = 1; node < nodes; ++node) {
          if ((set >> (node - 1) & 1U) != 0) present.push_back(node);
        }
        const Reduction reduction = ReduceJob(whole, planned, present);
        INFO(file << " on " << nodes << " nodes, set " << set << ": " << reduction.why_not);
        CHECK(reduction.job.has_value() == reduction.why_not.empty());
        if (!reduction.job) continue;
        ++reduced;
        const Config& config = reduction.job->config;
        CHECK(config.global_batch() == whole.global_batch());
        CHECK(reduction.job->processes.num_ranks() == config.cluster.ranks);
        CHECK(config.cluster.ranks <= std::ssize(present) * (whole.cluster.ranks / nodes));
        CHECK_NOTHROW(ProcessPlan(config.cluster));
        CHECK_FALSE(reduction.job->processes.Of(0).ranks.empty());
        CHECK_NOTHROW(JobPlan(config));
      }
    }
  }
  CHECK(reduced > 50);
}

}  // namespace troupe
