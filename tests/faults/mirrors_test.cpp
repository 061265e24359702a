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
