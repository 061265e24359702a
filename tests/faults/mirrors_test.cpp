// Jobs that go on from the memory of their processes, in layouts with and without replicas.
#include "tests/faults/checks.hpp"

using namespace troupe::testing;

namespace {

struct Mirrored {
  const char* description;
  std::vector<std::string> settings;
  std::size_t lost = 0;  ///< which of the four processes
};

std::vector<std::string> With(const std::vector<std::string>& more) {
  std::vector<std::string> all = {"run.steps=12", "schedule.micro_batch_size=4",
                                  "schedule.microbatches=2", "checkpoint.replicas=1"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// The language model is on ranks 0 to 3, the encoder on 4 to 7.
std::vector<Mirrored> Layouts() {
  return {{"a replica of the encoder makes the mirror, that of the language model is sent", {}, 2},
          {"the process with the replica that makes it is lost", {}, 3},
          {"masters in float32, and two instances of the optimizer",
           {"run.precision=bfloat16", "optimizer.shard=data",
            "modules.language.optimizer.shard=none", "modules.vision.optimizer.instances=2"},
           2},
          {"experts of other replicas",
           {"modules.language.layout={dp=4, ep=2}", "modules.language.experts=4",
            "modules.language.expert_hidden=32"}},
          {"parts of samples along cp", {"modules.language.layout={cp=4}"}},
          {"a head that is tied to the embeddings",
           {"modules.language.layout={pp=2, dp=2}", "modules.language.tied_head=true",
            "modules.language.axis_order=[\"tp\", \"cp\", \"pp\", \"dp\"]"}},
          {"a frozen encoder with values of its own, and files written while training waits",
           {"modules.vision.frozen=true", "checkpoint.async=false", "checkpoint.every=100"},
           2},
          {"an encoder whose state leaves the devices",
           {"modules.vision.ranks=0-3", "modules.vision.layout={dp=4}",
            "modules.language.layout={tp=4}", "modules.language.kv_heads=4", "cluster.ranks=4",
            "modules.vision.offload=state"}}};
}

}  // namespace

TEST_CASE("a job goes on from mirrors that were sent or made by replicas") {
  const Mirrored mirrored = GENERATE(from_range(Layouts()));
  INFO(mirrored.description);
  const auto settings = With(mirrored.settings);
  const Job undisturbed;
  const Program all(undisturbed.Train(settings, {"--local", "4"}));
  const Ending whole = all.WaitForEnd(kPatience);
  INFO(all.Transcript());
  REQUIRE(whole.exit_code == 0);
  const Job job;
  const Program program(job.Train(settings, {"--local", "4", "--restarts", "1"}));
  REQUIRE(program.WaitForLine("step 6/", kPatience));
  kill(ChildrenOf(program.pid()).at(mirrored.lost), SIGKILL);
  const Ending ending = program.WaitForEnd(kPatience);
  INFO(program.Transcript());
  CHECK(ending.exit_code == 0);
  CHECK_THAT(program.Transcript(),
             Catch::Contains("resuming after step ") && Catch::Contains(", from memory"));
  CHECK(job.Losses() == undisturbed.Losses());
}

TEST_CASE("a job whose state is lost with all that hold it goes on from the disk") {
  const auto settings = With({"checkpoint.every=2"});
  const Job undisturbed;
  const Program all(undisturbed.Train(settings, {"--local", "4"}));
  REQUIRE(all.WaitForEnd(kPatience).exit_code == 0);
  const Job job;
  const Program program(job.Train(settings, {"--local", "4", "--restarts", "2"}));
  REQUIRE(program.WaitForLine("step 6/", kPatience));
  const auto children = ChildrenOf(program.pid());
  for (const std::size_t holder : {2U, 3U}) kill(children.at(holder), SIGKILL);
  const Ending ending = program.WaitForEnd(kPatience);
  INFO(program.Transcript());
  CHECK(ending.exit_code == 0);
  CHECK_THAT(program.Transcript(), Catch::Contains("/checkpoints/step-"));
  CHECK(job.Losses() == undisturbed.Losses());
}

namespace {

/// A job of two nodes whose state is in memory only.
class HeldJob {
 public:
  HeldJob() : nodes_(2) {
    for (int node = 0; node < 2; ++node) Start(node);
  }
  void Start(int node) { nodes_.at(node) = Try(node, {"--restarts", "3"}); }
  /// Process 0 comes back to its run.
  void Resume() { nodes_[0] = Try(0, {"--restarts", "3", "--resume", job_.Runs().front()}); }
  /// The machine is lost, with its launcher.
  void Lose(int node) {
    for (const pid_t child : ChildrenOf((*this)[node].pid())) kill(child, SIGKILL);
    nodes_.at(node).reset();
  }
  std::unique_ptr<Program> Try(int node, const std::vector<std::string>& arguments,
                               const std::vector<std::string>& more = {}) const {
    auto settings = Settings();
    settings.insert(settings.end(), more.begin(), more.end());
    return std::make_unique<Program>(job_.Node(node, 2, join_, settings, arguments));
  }
  static std::vector<std::string> Settings() {
    return With({"checkpoint.every_minutes=0", "cluster.nodes=2", "run.steps=20"});
  }
  Program& operator[](int node) const { return *nodes_.at(node); }
  const Job& job() const { return job_; }

 private:
  const Job job_;
  const std::string join_ = FreeAddress();
  std::vector<std::unique_ptr<Program>> nodes_;
};

void CheckUndisturbed(const HeldJob& nodes) {
  for (int node = 0; node < 2; ++node) {
    const Ending ending = nodes[node].WaitForEnd(kPatience);
    INFO(nodes[node].Transcript());
    CHECK(ending.exit_code == 0);
  }
  const Job undisturbed;
  const Program all(undisturbed.Train(HeldJob::Settings(), {"--local", "2"}));
  REQUIRE(all.WaitForEnd(kPatience).exit_code == 0);
  CHECK(nodes.job().Losses() == undisturbed.Losses());
}

}  // namespace

TEST_CASE("the machine of process 0 comes back to a job that has no checkpoint") {
  HeldJob nodes;
  REQUIRE(nodes[0].WaitForLine("step 6/", kPatience));
  nodes.Lose(0);
  nodes.Resume();
  REQUIRE(nodes[0].WaitForLine(", from memory", kPatience));
  CheckUndisturbed(nodes);
}

TEST_CASE("a process that does not fit a job ends alone, and the job waits for another") {
  HeldJob nodes;
  REQUIRE(nodes[0].WaitForLine("step 5/", kPatience));
  const auto ends = [](const std::unique_ptr<Program>& wrong, const std::string& reason) {
    const Ending ending = wrong->WaitForEnd(kPatience);
    INFO(wrong->Transcript());
    CHECK(ending.exit_code == 4);
    CHECK_THAT(wrong->Transcript(), Catch::Contains(reason));
  };
  nodes.Lose(1);
  ends(nodes.Try(1, {"--restarts", "3"}, {"run.seed=8"}), "run.seed is 8, n0 has 7");
  nodes.Start(1);
  REQUIRE(nodes[0].WaitForLine("step 12/", kPatience));
  nodes.Lose(0);
  ends(nodes.Try(0, {"--restarts", "3"}),
       "n1 would go on with a run that has begun before, n0 begins a new one: start it with "
       "--resume");
  ends(nodes.Try(0, {"--resume", nodes.job().Runs().front()}),
       "--restarts is more than 0, n0 does not set it");
  nodes.Resume();
  REQUIRE(nodes[0].WaitForLine(", from memory", kPatience));
  CheckUndisturbed(nodes);
}

TEST_CASE("a job that waits in vain for the machine of process 0 says how to resume it") {
  const Job job;
  const std::string join = FreeAddress();
  const auto settings = With({"checkpoint.every=1", "checkpoint.async=false", "cluster.nodes=2",
                              "cluster.wait_for_spare_s=1", "run.steps=40"});
  const Program second(job.Node(1, 2, join, settings, {"--restarts", "1"}));
  auto first = std::make_unique<Program>(job.Node(0, 2, join, settings, {"--restarts", "1"}));
  REQUIRE(first->WaitForLine("step 3/", kPatience));
  for (const pid_t child : ChildrenOf(first->pid())) kill(child, SIGKILL);
  first.reset();
  const Ending ending = second.WaitForEnd(kPatience);
  INFO(second.Transcript());
  CHECK(ending.exit_code == 3);
  CHECK_THAT(ending.last_line, Catch::Contains("the job could not go on: cannot reach " + join));
  CHECK_THAT(second.Transcript(),
             Catch::Contains("with: the same command and --resume " + job.Runs().front()));
}
