#include "cluster/join_address.hpp"

#include <catch2/catch.hpp>

using namespace troupe;

namespace {

ClusterConfig Cluster(const std::string& join = "", const std::string& first_address = "") {
  ClusterConfig cluster;
  cluster.ranks = 2;
  cluster.join = join;
  cluster.nodes = {{"n0", first_address, 1}, {"n1", "10.0.0.2", 1}};
  return cluster;
}

/// "n0:7420 from SOURCE", or the error.
std::string Chosen(const Variables& variables, const std::optional<std::string>& argument = {},
                   const ClusterConfig& cluster = Cluster()) {
  try {
    const JoinChoice choice = ChooseJoin(variables, argument, cluster);
    return ToString(choice.address) + " from " + choice.source;
  } catch (const LaunchError& error) {
    return error.what();
  }
}

std::string FirstOf(const std::string& list) {
  try {
    return FirstHost(list);
  } catch (const std::invalid_argument&) {
    return "refused";
  }
}

}  // namespace

TEST_CASE("the first source in the documented order says where to join") {
  Variables all = {{"TROUPE_JOIN", "b:2"},
                   {"MASTER_ADDR", "c"},
                   {"MASTER_PORT", "3"},
                   {"SLURM_STEP_NODELIST", "d[1-2]"},
                   {"SLURM_JOB_NODELIST", "e[1-2]"}};
  const auto without = [&](const char* name) { all.erase(name); };
  CHECK(Chosen(all, "a:1", Cluster("b:2", "f")) == "a:1 from --join");
  CHECK(Chosen(all, {}, Cluster("b:2", "f")) == "b:2 from TROUPE_JOIN");
  without("TROUPE_JOIN");
  CHECK(Chosen(all, {}, Cluster("x:9", "f")) == "x:9 from cluster.join");
  CHECK(Chosen(all, {}, Cluster("", "f")) == "c:3 from MASTER_ADDR:MASTER_PORT");
  without("MASTER_ADDR");
  without("MASTER_PORT");
  CHECK(Chosen(all, {}, Cluster("", "f")) == "d1:7420 from SLURM_STEP_NODELIST");
  without("SLURM_STEP_NODELIST");
  CHECK(Chosen(all, {}, Cluster("", "f")) == "e1:7420 from SLURM_JOB_NODELIST");
  without("SLURM_JOB_NODELIST");
  CHECK(Chosen(all, {}, Cluster("", "f")) == "f:7420 from cluster.nodes");
  CHECK(Chosen(all, {}, Cluster("", "fd00::1")) == "[fd00::1]:7420 from cluster.nodes");
}

TEST_CASE("with no source there is an error and no guess") {
  const std::string expected =
      "the address of process 0 is not given; expected --join HOST:PORT, TROUPE_JOIN, "
      "cluster.join, "
      "MASTER_ADDR and MASTER_PORT, SLURM_STEP_NODELIST, SLURM_JOB_NODELIST or the address of the "
      "first of cluster.nodes";
  CHECK(Chosen({}) == expected);
  CHECK(Chosen({{"TROUPE_JOIN", ""}, {"HOSTNAME", "n0"}}, {}, ClusterConfig{}) == expected);
}

TEST_CASE("a variable and a configuration that disagree need the command line") {
  const Variables variables = {{"TROUPE_JOIN", "n1:7420"}};
  CHECK(Chosen(variables, {}, Cluster("n0:7420")) ==
        "TROUPE_JOIN says n1:7420, cluster.join says n0:7420; expected the same, or --join, which "
        "wins");
  CHECK(Chosen(variables, "n0:7420", Cluster("n0:7420")) == "n0:7420 from --join");
}

TEST_CASE("an address that is none is refused by its source") {
  CHECK_THAT(Chosen({}, "n0"), Catch::StartsWith("--join: \"n0\": expected HOST:PORT"));
  CHECK_THAT(Chosen({}, ""), Catch::StartsWith("--join: \"\": expected HOST:PORT"));
  CHECK_THAT(Chosen({{"TROUPE_JOIN", "n0:x"}}), Catch::StartsWith("TROUPE_JOIN: \"n0:x\""));
  CHECK(Chosen({}, "n0:0") == "--join: expected a port from 1 on, got n0:0");
  CHECK_THAT(Chosen({{"MASTER_ADDR", "n0"}, {"MASTER_PORT", "70000"}}),
             Catch::StartsWith("MASTER_ADDR:MASTER_PORT: \"n0:70000\""));
  CHECK_THAT(Chosen({{"SLURM_JOB_NODELIST", "n["}}),
             Catch::StartsWith("SLURM_JOB_NODELIST: expected a list of hosts"));
}

TEST_CASE("torch's address and port belong together, and its own store keeps its port") {
  CHECK(Chosen({{"MASTER_ADDR", "n0"}}) ==
        "MASTER_ADDR is n0, but MASTER_PORT is missing; expected both or none");
  CHECK(Chosen({{"MASTER_PORT", "29500"}}) ==
        "MASTER_PORT is 29500, but MASTER_ADDR is missing; expected both or none");
  CHECK(Chosen({{"MASTER_ADDR", "fd00::1"}, {"MASTER_PORT", "29500"}}) ==
        "[fd00::1]:29500 from MASTER_ADDR:MASTER_PORT");
  Variables agent = {{"MASTER_ADDR", "n0"}, {"MASTER_PORT", "29500"}};
  agent["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  CHECK(Chosen(agent) == "n0:7420 from MASTER_ADDR");
  agent["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  CHECK(Chosen(agent) == "n0:29500 from MASTER_ADDR:MASTER_PORT");
}

TEST_CASE("the first host of a Slurm list is found in all its spellings") {
  CHECK(FirstOf("n0") == "n0");
  CHECK(FirstOf("n0,n1") == "n0");
  CHECK(FirstOf("n[0-3,7],m1") == "n0");
  CHECK(FirstOf("n[3,7]") == "n3");
  CHECK(FirstOf("n[7]") == "n7");
  CHECK(FirstOf("gpu-node[001-010,020]") == "gpu-node001");
  CHECK(FirstOf("r[0-1]n[02-10],x") == "r0n02");
  CHECK(FirstOf("n[0-3].cluster.example,m") == "n0.cluster.example");
  CHECK(FirstOf("a.b-c_d,e[1-2]") == "a.b-c_d");
  for (const char* bad :
       {"", ",n0", "n[", "n[]", "n[0", "n[a-b]", "n]0", "n 0", "n[-3]", "n[[0]]", "n0:7420"}) {
    INFO(bad);
    CHECK(FirstOf(bad) == "refused");
  }
}
