#include "cluster/environment.hpp"

#include <catch2/catch.hpp>

using namespace troupe;

namespace {

/// Four nodes of one process each, unless said otherwise.
ProcessPlan Nodes(int nodes, int devices = 1, ProcessesPer per = ProcessesPer::kNode) {
  ClusterConfig cluster;
  cluster.ranks = nodes * devices;
  cluster.processes = per;
  for (int i = 0; i < nodes; ++i) cluster.nodes.push_back({"n" + std::to_string(i), "", devices});
  return ProcessPlan(cluster);
}

/// "2/4 from SOURCE", or the error.
std::string Chosen(const Variables& variables, const std::optional<std::string>& argument = {},
                   const ProcessPlan& plan = Nodes(4)) {
  try {
    const NodeChoice choice = ChooseNode(variables, argument, plan);
    const bool per_node = choice.launched_per == LaunchedPer::kNode;
    return std::to_string(choice.node) + "/" + std::to_string(choice.num_nodes) + " from " +
           choice.source + (per_node ? ", per node" : "");
  } catch (const LaunchError& error) {
    return error.what();
  }
}

/// How each launcher says I/N.
struct Launcher {
  std::string source;
  std::string index;
  std::string count;
  Variables Says(int i, int n) const {
    Variables variables = {{index, std::to_string(i)}, {count, std::to_string(n)}};
    if (source.starts_with("SLURM")) variables["SLURM_STEP_ID"] = "0";
    return variables;
  }
};

const std::vector<Launcher> kLaunchers = {
    {"SLURM_PROCID/SLURM_NTASKS", "SLURM_PROCID", "SLURM_NTASKS"},
    {"OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK/PMI_SIZE", "PMI_RANK", "PMI_SIZE"},
    {"GROUP_RANK/GROUP_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"},
    {"RANK/WORLD_SIZE", "RANK", "WORLD_SIZE"},
    {"JOB_COMPLETION_INDEX/TROUPE_NUM_NODES", "JOB_COMPLETION_INDEX", "TROUPE_NUM_NODES"},
};

Variables Merged(Variables a, Variables b) {
  a.merge(b);
  return a;
}

const std::string kFourPlanned = "the configuration plans 4 processes (n0, n1, n2, n3)";

}  // namespace

TEST_CASE("each launcher alone says which process this is") {
  for (const auto& launcher : kLaunchers) {
    INFO(launcher.source);
    CHECK(Chosen(launcher.Says(0, 4)) == "0/4 from " + launcher.source);
    CHECK(Chosen(launcher.Says(3, 4)) == "3/4 from " + launcher.source);
  }
  CHECK(Chosen({{"TROUPE_NODE", "2/4"}}) == "2/4 from TROUPE_NODE");
  CHECK(Chosen({}, "1/4") == "1/4 from --node");
}

TEST_CASE("sources that agree are fine, and the first of them is named") {
  for (const auto& a : kLaunchers) {
    CHECK(Chosen(a.Says(2, 4), "2/4") == "2/4 from --node");
    for (const auto& b : kLaunchers) {
      INFO(a.source << " and " << b.source);
      const std::string first = &a < &b ? a.source : b.source;
      CHECK(Chosen(Merged(a.Says(2, 4), b.Says(2, 4))) == "2/4 from " + first);
    }
  }
}

TEST_CASE("two sources that disagree are both named with what they say") {
  for (const auto& launcher : kLaunchers) {
    INFO(launcher.source);
    CHECK(Chosen(launcher.Says(2, 4), "1/4") == "--node says 1/4, " + launcher.source + " say 2/4");
    CHECK(Chosen(Merged(launcher.Says(1, 3), {{"TROUPE_NODE", "1/4"}})) ==
          "TROUPE_NODE says 1/4, " + launcher.source + " say 1/3");
  }
  for (std::size_t a = 0; a < kLaunchers.size(); ++a) {
    for (std::size_t b = a + 1; b < kLaunchers.size(); ++b) {
      CHECK(Chosen(Merged(kLaunchers[a].Says(0, 4), kLaunchers[b].Says(1, 4))) ==
            kLaunchers[a].source + " say 0/4, " + kLaunchers[b].source + " say 1/4");
    }
  }
  CHECK(Chosen({{"TROUPE_NODE", "0/4"}}, "1/4") == "--node says 1/4, TROUPE_NODE says 0/4");
}

TEST_CASE("a source that is half set is refused by the name of what is missing") {
  for (const auto& launcher : kLaunchers) {
    INFO(launcher.source);
    Variables no_count = launcher.Says(1, 4);
    no_count.erase(launcher.count);
    CHECK(Chosen(no_count) ==
          launcher.index + " is 1, but " + launcher.count + " is missing; expected both or none");
    Variables no_index = launcher.Says(1, 4);
    no_index[launcher.index] = "";
    CHECK(Chosen(no_index, "1/4") ==
          launcher.count + " is 4, but " + launcher.index + " is missing; expected both or none");
  }
}

TEST_CASE("numbers that are none, or none of the job, are refused") {
  for (const char* bad : {"", "1", "1/", "/4", "a/4", "1/4/5", "-1/4", "+1/4", "1 /4", "1.0/4",
                          "99999999999/4", "1/4 "}) {
    INFO(bad);
    CHECK(Chosen({}, bad) == "--node: expected I/N, such as 0/4 for the first of four, got \"" +
                                 std::string(bad) + "\"");
  }
  CHECK(Chosen({}, "4/4") == "--node says 4/4, expected a number from 0 to 3");
  CHECK(Chosen({}, "0/0") == "--node says 0/0, expected at least 1 process");
  CHECK(Chosen({{"TROUPE_NODE", "x"}}) ==
        "TROUPE_NODE: expected I/N, such as 0/4 for the first of four, got \"x\"");
  for (const auto& launcher : kLaunchers) {
    INFO(launcher.source);
    CHECK(Chosen(launcher.Says(4, 4)) ==
          launcher.source + " say 4/4, expected a number from 0 to 3");
    Variables word = launcher.Says(1, 4);
    word[launcher.index] = "one";
    CHECK(Chosen(word) == launcher.index + ": expected a whole number, got \"one\"");
    CHECK(Chosen(launcher.Says(-1, 4)) == launcher.index + ": expected a whole number, got \"-1\"");
  }
}

TEST_CASE("an unplanned number of processes is refused") {
  CHECK(Chosen({}, "1/3") == "--node says 1/3, " + kFourPlanned);
  CHECK(Chosen(kLaunchers[0].Says(5, 8)) == "SLURM_PROCID/SLURM_NTASKS say 5/8, " + kFourPlanned);
  CHECK(Chosen(kLaunchers[1].Says(0, 2), {}, Nodes(1)) ==
        "OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE say 0/2, the configuration plans 1 process "
        "(n0)");
}

TEST_CASE(
    "with no source a single process is itself, and several get a list of the known sources") {
  CHECK(Chosen({}, {}, Nodes(1)) == "0/1 from the plan");
  CHECK(Chosen({{"SLURM_JOB_ID", "17"}, {"HOSTNAME", "n3"}}, {}, Nodes(1)) == "0/1 from the plan");
  CHECK(Chosen({}) ==
        kFourPlanned +
            ", but the number of this one is not given; expected --node I/N, TROUPE_NODE=I/N, or a "
            "launcher's SLURM_PROCID/SLURM_NTASKS (in a step), "
            "OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE, PMI_RANK/PMI_SIZE, "
            "GROUP_RANK/GROUP_WORLD_SIZE, RANK/WORLD_SIZE or "
            "JOB_COMPLETION_INDEX/TROUPE_NUM_NODES");
}

TEST_CASE("Slurm counts inside a step only, since its batch script is no task") {
  Variables batch = kLaunchers[0].Says(0, 4);
  batch.erase("SLURM_STEP_ID");
  CHECK(Chosen(batch, "3/4") == "3/4 from --node");
  CHECK(Chosen(batch, {}, Nodes(1)) == "0/1 from the plan");
  CHECK_THAT(Chosen(batch), Catch::Contains("the number of this one is not given"));
}

TEST_CASE("a job with a process per device may be launched per process or per node") {
  const ProcessPlan plan = Nodes(2, 4, ProcessesPer::kDevice);
  for (const auto& launcher : kLaunchers) {
    INFO(launcher.source);
    CHECK(Chosen(launcher.Says(5, 8), {}, plan) == "5/8 from " + launcher.source);
    CHECK(Chosen(launcher.Says(1, 2), {}, plan) == "1/2 from " + launcher.source + ", per node");
    CHECK(Chosen(launcher.Says(1, 4), {}, plan) ==
          launcher.source + " say 1/4, the configuration plans 8 processes on 2 nodes (n0.d0, " +
              "n0.d1, n0.d2, n0.d3, n1.d0, n1.d1, n1.d2, n1.d3)");
  }
  CHECK(Chosen({}, "1/2", plan) == "1/2 from --node, per node");
  CHECK(Chosen({}, "1/2", Nodes(2, 1, ProcessesPer::kDevice)) == "1/2 from --node");
}

TEST_CASE("torchrun's workers count where it starts several on a node") {
  const Variables worker = {
      {"GROUP_RANK", "1"}, {"GROUP_WORLD_SIZE", "2"}, {"RANK", "5"}, {"WORLD_SIZE", "8"}};
  CHECK(Chosen(worker, {}, Nodes(2, 4, ProcessesPer::kDevice)) == "5/8 from RANK/WORLD_SIZE");
  // All four workers of a node would otherwise be process 1.
  CHECK(Chosen(worker, {}, Nodes(2, 4)) ==
        "RANK/WORLD_SIZE say 5/8, the configuration plans 2 processes (n0, n1)");
}

TEST_CASE("a task of many is known by what any launcher says") {
  CHECK(!TaskOfMany({}));
  CHECK(!TaskOfMany({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  CHECK(!TaskOfMany({{"RANK", "zero"}, {"WORLD_SIZE", "2"}}));
  CHECK(!TaskOfMany({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}));  // a batch script
  CHECK(TaskOfMany({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}) ==
        "SLURM_PROCID/SLURM_NTASKS say 1/2");
}
