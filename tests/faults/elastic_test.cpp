// Jobs that go on without a lost machine (cluster.elastic), and with it when it comes back.
#include <cmath>
#include <filesystem>

#include "tests/faults/checks.hpp"

using namespace troupe::testing;

namespace {

constexpr int kNodes = 4;
constexpr int kLost = 2;

struct Elastic {
  const char* description;
  std::vector<std::string> settings;
  const char* layout;  ///< without the lost machine
};

std::vector<std::string> Colocated(std::vector<std::string> more) {
  more.insert(more.end(), {"modules.vision.ranks=0-7", "modules.vision.layout={dp=8}",
                           "modules.language.ranks=0-7", "modules.language.layout={tp=2, dp=4}"});
  return more;
}

std::vector<Elastic> Layouts() {
  return {{"vision loses replicas, with mirrors in memory",
           {"checkpoint.replicas=1", "schedule.micro_batch_size=4", "schedule.microbatches=2"},
           "6 of 8 ranks, vision dp 2 of 4"},
          {"colocated modules shrink together, from checkpoints on disk",
           Colocated({"schedule.micro_batch_size=1", "schedule.microbatches=3",
                      "checkpoint.every=2", "optimizer.shard=data"}),
           "6 of 8 ranks, vision dp 6 of 8, language dp 3 of 4, 4 microbatches"},
          {"a process gets no rank, since three replicas cannot share the batch",
           Colocated(
               {"schedule.micro_batch_size=2", "schedule.microbatches=2", "checkpoint.replicas=1"}),
           "4 of 8 ranks, vision dp 4 of 8, language dp 2 of 4, 4 microbatches"}};
}

/// `troupe node` for each node of a job that may go on without some.
class ElasticJob {
 public:
  ElasticJob(int nodes, std::vector<std::string> settings) : settings_(std::move(settings)) {
    settings_.emplace_back("cluster.elastic=true");
    settings_.emplace_back("cluster.wait_for_spare_s=1");
    nodes_.resize(static_cast<std::size_t>(nodes));
    for (int node = 0; node < nodes; ++node) Start(node);
  }
  void Start(int node) {
    nodes_.at(static_cast<std::size_t>(node)) = std::make_unique<Program>(
        job_.Node(node, static_cast<int>(nodes_.size()), join_, settings_, {"--restarts", "3"}));
  }
  /// The machine is lost, with its launcher.
  void Lose(int node) {
    for (const pid_t child : ChildrenOf((*this)[node].pid())) kill(child, SIGKILL);
    (*this)[node].Signal(SIGKILL);
  }
  Program& operator[](int node) const { return *nodes_.at(static_cast<std::size_t>(node)); }
  const Job& job() const { return job_; }

 private:
  const Job job_;
  const std::string join_ = FreeAddress();
  std::vector<std::string> settings_;
  std::vector<std::unique_ptr<Program>> nodes_;
};

void CheckLosses(const std::vector<double>& losses, const std::vector<double>& expected) {
  REQUIRE(losses.size() == expected.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    INFO("step " << i + 1);
    CHECK(std::abs(losses[i] - expected[i]) <= 1e-10 * expected[i]);
  }
}

}  // namespace

TEST_CASE("a job goes on without a lost machine, then with it, and has the same losses") {
  const Elastic elastic = GENERATE(from_range(Layouts()));
  INFO(elastic.description);
  auto settings = elastic.settings;
  settings.insert(settings.end(), {"run.steps=80", "run.precision=float64",
                                   "cluster.nodes=" + std::to_string(kNodes)});
  const Job undisturbed;
  const Program all(undisturbed.Train(settings, {"--local", std::to_string(kNodes)}));
  REQUIRE(all.WaitForEnd(kPatience).exit_code == 0);

  ElasticJob nodes(kNodes, settings);
  const Program& first = nodes[0];
  REQUIRE(first.WaitForLine("step 5/", kPatience));
  nodes.Lose(kLost);
  REQUIRE(first.WaitForLine(std::string("going on with ") + elastic.layout, kPatience));
  nodes.Start(kLost);
  REQUIRE(first.WaitForLine("all processes are there again", kPatience));
  const Ending ending = first.WaitForEnd(kPatience);
  INFO(first.Transcript() << nodes[kLost].Transcript());
  CHECK(ending.exit_code == 0);
  CHECK_THAT(nodes[kLost].Transcript(),
             Catch::Contains("waiting as a spare: the job has gone on without n2") &&
                 Catch::Contains("the spare takes the place of n2"));
  for (int node = 0; node < kNodes; ++node) {
    CHECK(nodes[node].WaitForEnd(kPatience).exit_code == 0);
  }
  CheckLosses(nodes.job().Losses(), undisturbed.Losses());
}

TEST_CASE("one process goes on alone") {
  // Without a transport of UCX, and with the state in its own memory.
  const std::vector<std::string> settings = {"modules.vision.ranks=0-1",
                                             "modules.vision.layout={dp=2}",
                                             "modules.language.ranks=0-1",
                                             "modules.language.layout={dp=2}",
                                             "cluster.ranks=2",
                                             "schedule.micro_batch_size=4",
                                             "schedule.microbatches=2",
                                             "checkpoint.replicas=1",
                                             "checkpoint.every_minutes=0",
                                             "transport.ucx_tls=none",
                                             "run.precision=float64",
                                             "run.steps=20"};
  const Job undisturbed;
  const Program all(undisturbed.Train(settings, {"--local", "2"}));
  REQUIRE(all.WaitForEnd(kPatience).exit_code == 0);
  ElasticJob nodes(2, settings);
  REQUIRE(nodes[0].WaitForLine("step 5/", kPatience));
  nodes.Lose(1);
  const Ending ending = nodes[0].WaitForEnd(kPatience);
  INFO(nodes[0].Transcript());
  CHECK(ending.exit_code == 0);
  CHECK_THAT(nodes[0].Transcript(),
             Catch::Contains("going on with 1 of 2 ranks") && Catch::Contains(", from memory"));
  CheckLosses(nodes.job().Losses(), undisturbed.Losses());
}

TEST_CASE("a job that is too small without a lost machine ends, and says why") {
  ElasticJob nodes(2, {});
  REQUIRE(nodes[0].WaitForLine("step 2/", kPatience));
  nodes.Lose(1);
  CHECK(nodes[0].WaitForEnd(kPatience).exit_code == 3);
  CHECK_THAT(
      nodes[0].Transcript(),
      Catch::Contains("the job cannot go on with fewer processes: it needs at least 5 ranks, and 4 "
                      "are left"));
}

TEST_CASE("Ctrl-C while the job waits for a lost process ends it after the next step") {
  ElasticJob nodes(kNodes, {"checkpoint.replicas=1"});
  REQUIRE(nodes[0].WaitForLine("step 3/", kPatience));
  nodes.Lose(kLost);
  REQUIRE(nodes[0].WaitForLine("waiting for a process in its place", kPatience));
  nodes[0].Signal(SIGINT);
  CHECK(nodes[0].WaitForEnd(kPatience).exit_code == 130);
  INFO(nodes[0].Transcript());
  CHECK_THAT(nodes[0].Transcript(), Catch::Contains("going on with 6 of 8 ranks") &&
                                        Catch::Contains("interrupted after step"));
  CHECK(nodes[1].WaitForEnd(kPatience).exit_code == 0);
  CHECK(std::filesystem::exists(nodes.job().Runs().front() + "/checkpoints"));
}
