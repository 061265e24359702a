// Messages of every kind are lost, one per job: it ends soon, and with the place where that
// happened, not with what happened to wait for it in the end.
#include <algorithm>
#include <future>
#include <regex>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/actors/threaded_job.hpp"

namespace troupe {
namespace {

struct Loss {
  std::string fault;     ///< ACTOR@MESSAGE@COUNT
  std::string expected;  ///< in what the job says
};

/// An encoder of two stages and two replicas, a language model of two stages, three replicas and
/// two shards each.
Config DisjointConfig() {
  Config config = SyntheticConfigOf(
      {{"vision", LayoutOf(1, 2, 2)}, {"language", LayoutOf(2, 2, 3)}}, {{"vision", "language"}});
  config.schedule.micro_batch_size = 2;
  config.optimizer.clip_norm = 1.0;
  return config;
}

Config ColocatedConfig() {
  Config config = SyntheticConfigOf(
      {{"vision", LayoutOf(1, 1, 2)}, {"language", LayoutOf(2, 1, 1)}}, {{"vision", "language"}});
  config.modules[1].ranks = config.modules[0].ranks;
  config.cluster.ranks = 2;
  config.schedule.micro_batch_size = 2;
  config.schedule.window = 2;
  return config;
}

/// A language model of two ranks and two replicas, under a schedule that is not 1f1b.
Config ScheduledConfig(const std::string& kind) {
  Config config = SyntheticConfigOf({{"language", LayoutOf(1, 2, 2)}}, {});
  config.schedule.micro_batch_size = 2;
  config.schedule.microbatches = 6;
  config.schedule.kind = ScheduleKindOf(kind).value();
  SetChunks(config);
  return config;
}

std::string CauseOf(const Config& config, const std::string& fault) {
  ThreadedJob job;
  job.stall_after = std::chrono::milliseconds(600);
  job.faults = {PlantedFault::Parse("lose@" + fault)};
  return job.Run(config, TrainingRounds(4, 6)).failure.text;
}

/// Without the place of a microbatch in its step, which follows from its number.
std::string WithoutPlaces(const std::string& cause) {
  static const std::regex place(R"( \(step \d+ mb \d+\))");
  return std::regex_replace(cause, place, "");
}

/// All at a time: most of it is waiting.
void CheckAll(const Config& config, const std::vector<Loss>& losses) {
  std::vector<std::future<std::string>> causes;
  for (const Loss& loss : losses) {
    causes.push_back(std::async(std::launch::async, CauseOf, config, loss.fault));
  }
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const std::string cause = causes[i].get();
    CHECK_THAT(losses[i].fault + "\n" + WithoutPlaces(cause), Catch::Contains(losses[i].expected));
  }
}

}  // namespace

TEST_CASE("a stall says in which step its microbatch is", "[actors][threads]") {
  CHECK_THAT(CauseOf(DisjointConfig(), "stage vision.s1 dp0@Activation@24"),
             Catch::Contains("the activation of microbatch 23 from stage vision.s0 dp0 "
                             "(step 4 mb 5), which has sent it"));
}

TEST_CASE("a stage says in which step the microbatch is that it expected", "[actors][threads]") {
  CHECK_THAT(CauseOf(DisjointConfig(), "stage vision.s1 dp0@Activation@9"),
             Catch::Contains("vision.s1 dp0: expected the activation of microbatch 8 from stage "
                             "vision.s0 dp0 (step 2 mb 2), got 9"));
}

TEST_CASE("a message that is lost at a boundary or in a pipeline is named", "[actors][threads]") {
  CheckAll(
      DisjointConfig(),
      {
          {"stage vision.s1 dp0@Activation@24",
           "stage vision.s1 dp0 waits for the activation of microbatch 23 from stage vision.s0 "
           "dp0, which has sent it and waits for the gradient: the message is lost"},
          {"stage vision.s0 dp1@Gradient@24",
           "stage vision.s0 dp1 waits for the gradient of microbatch 23 from stage vision.s1 dp1, "
           "which does not owe it: a message between them is lost"},
          {"leader vision>language/source.1@Activation@4",
           "stage vision.s1 dp1 waits for the gradient of microbatch 3 from leader "
           "vision>language/source.1, which does not owe it: a message between them is lost"},
          {"leader vision>language/destination.2@Slice@5",
           "leader vision>language/source.1 waits for the gradient of microbatch 4 from leader "
           "vision>language/destination.2, which does not owe it: a message between them is lost"},
          {"leader vision>language/destination.1@Slice@5",
           "leader vision>language/destination.1 waits for the slice of microbatch "},
          {"leader vision>language/source.0@GradientSlice@2",
           "leader vision>language/source.0 waits for the gradient of microbatch"},
          {"leader vision>language/destination.0@Gradient@6",
           "leader vision>language/destination.0 waits for the gradient of microbatch 5 from stage "
           "language.s0 dp0, which does not owe it: a message between them is lost"},
          {"stage vision.s0 dp1@Input@24",
           "stage vision.s0 dp1 waits for the input of microbatch 23 from feed of vision dp1, "
           "which has sent it and waits for the taking of the input: the message is lost"},
      });
}

TEST_CASE("a message that is lost with others behind it is noticed at once", "[actors][threads]") {
  CheckAll(DisjointConfig(),
           {
               {"stage vision.s1 dp0@Activation@3",
                "vision.s1 dp0: expected the activation of microbatch 2 from stage vision.s0 dp0, "
                "got 3"},
               {"stage vision.s0 dp1@Gradient@3",
                "vision.s0 dp1: expected the gradient of microbatch 2 from stage vision.s1 dp1, "
                "got 3"},
               {"stage vision.s0 dp1@Input@3",
                "vision.s0 dp1: expected the input of microbatch 2 from feed of vision dp1, got 3"},
               {"stage language.s1 dp2@RoundBegin@2",
                "language.s1 dp2: expected round 1 from director, got 2"},
               {"feed of vision dp0@RoundBegin@1",
                "feed of vision dp0: expected round 0 from director, got 1"},
               {"update of vision.s0@UpdateRound@2",
                "update of vision.s0: expected the gradients of round 2, got those of round 1"},
           });
}

TEST_CASE("a message that is lost between a stage and its devices is named", "[actors][threads]") {
  const std::string lost = ", which does not owe it: a message between them is lost";
  CheckAll(
      DisjointConfig(),
      {
          {"lock step 2@RunForward@24", " from lock step 2" + lost},
          {"stage language.s1 dp0@BackwardDone@3",
           "stage language.s1 dp0 waits for the backward on devices 10, 11 of microbatch 2 "
           "from lock step"},
          {"device 5@RunForward@4", "waits for the forward of microbatch 3 from device 5" + lost},
          {"device 5@RunBackward@24",
           "waits for the backward of microbatch 23 from device 5" + lost},
          {"device 6@ReduceGradients@2",
           "waits for the gradient reduction of round 1 from device 6" + lost},
          {"device 6@UpdateParameters@1",
           "waits for the parameter update of round 0 from device 6" + lost},
      });
}

TEST_CASE("a message that is lost at the end of a round is named", "[actors][threads]") {
  CheckAll(DisjointConfig(),
           {
               {"stage language.s1 dp2@RoundBegin@4",
                "director waits for the report of round 3 from stage language.s1 dp2, which does "
                "not owe it"},
               {"director@StageReport@2", "director has no report of round 0 from stage "},
               {"update of vision.s0@BackwardsDone@1",
                "update of vision.s0 waits for the last backward of round 0 from stage vision.s0"},
               {"update of vision.s0@UpdateRound@4",
                "update of vision.s0 waits for the beginning of the update of round 3 from "
                "director, which has sent it and waits for the gradient norm: the message is lost"},
               {"update of vision.s0@ApplyUpdate@2",
                "update of vision.s0 waits for the clip coefficient of round 1 from director, "
                "which has sent it and waits for the parameter update: the message is lost"},
               {"director@SquaredNorm@1", "director waits for the gradient norm of round 0 from"},
               {"director@UpdateDone@1", "director has no parameter update of round 0 from"},
               {"stage vision.s0 dp0@Updated@1",
                "stage vision.s0 dp0 waits for the parameter update of round 0 from update of "
                "vision.s0, which does not owe it: a message between them is lost"},
           });
}

TEST_CASE("a message that is lost at a colocated edge is named", "[actors][threads]") {
  CheckAll(ColocatedConfig(),
           {
               {"phase vision>language@Activation@3",
                "phase vision>language waits for the activation of window 1 from stage vision.s0 "
                "dp"},
               {"stage vision.s0 dp1@Gradient@2",
                "stage vision.s0 dp1 waits for the gradient of microbatch 1 from phase "
                "vision>language, which does not owe it: a message between them is lost"},
               {"phase vision>language@Gradient@3",
                "phase vision>language waits for the gradient of microbatch 2 from stage "
                "language.s0 dp0, which does not owe it: a message between them is lost"},
               {"stage language.s0 dp0@Activation@24",
                "stage language.s0 dp0 waits for the activation of microbatch 23 from phase "
                "vision>language, which has sent it and waits for the gradient: the message is "
                "lost"},
               {"device 1@RunExchange@2",
                "lock step 0 waits for the row exchange of window 0 from device 1, which does not "
                "owe it"},
               {"phase vision>language@ExchangeDone@1",
                "phase vision>language waits for the row exchange on devices 0, 1 of window 0 from "
                "lock step 0, which does not owe it"},
           });
}

TEST_CASE("a message that is lost while an encoder's state moves is named", "[actors][threads]") {
  Config config = ColocatedConfig();
  config.modules[0].offload = Offload::kState;
  const std::string lost = ", which does not owe it";
  CheckAll(config,
           {
               {"device 1@OffloadState@2",
                "lock step 0 waits for the offload of the encoder's state of window 1 from device "
                "1" +
                    lost},
               {"device 0@RestoreState@1",
                "lock step 0 waits for the restore of the encoder's state of window 0 from device "
                "0" +
                    lost},
               {"device 1@StateMoved@2",
                "lock step 0 waits for the restore of the encoder's state of window 0 from device "
                "1, which owes it and waits for nothing"},
               {"lock step 0@RestoreState@2",
                "phase vision>language waits for the restore of the encoder's state on devices 0, "
                "1 of window 1 from lock step 0" +
                    lost},
               {"phase vision>language@StateOffloaded@3",
                "phase vision>language waits for the offload of the encoder's state on devices 0, "
                "1 of window 2 from lock step 0" +
                    lost},
           });
}

TEST_CASE("a message that is lost among passes that wait for their turn is named",
          "[actors][threads]") {
  const std::string lost = ", which does not owe it: a message between them is lost";
  CheckAll(ScheduledConfig("interleaved"),
           {
               {"stage language.s2 dp0@Activation@24",
                "stage language.s2 dp0 waits for the activation of microbatch 23 from stage "
                "language.s1 dp0, which has sent it and waits for the gradient: the message is "
                "lost"},
               {"stage language.s0 dp1@Gradient@24",
                "stage language.s0 dp1 waits for the gradient of microbatch 23 from stage "
                "language.s1 dp1" +
                    lost},
               {"lock step 0@RunForward@9", " from lock step 0" + lost},
               {"device 3@RunBackward@5", "from device 3" + lost},
           });
}

TEST_CASE("a lost command for the weights of a backward is named", "[actors][threads]") {
  CheckAll(ScheduledConfig("zb-h1"),
           {
               {"device 2@RunBackwardWeights@3",
                "lock step 1 waits for the weight gradients of microbatch 2 from device 2, which "
                "does not owe it: a message between them is lost"},
               {"stage language.s0 dp0@BackwardWeightsDone@24",
                "stage language.s0 dp0 waits for the weight gradients on device 0 of microbatch "
                "23 from lock step 0"},
           });
}

}  // namespace troupe
