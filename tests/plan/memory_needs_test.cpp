// What of a job's memory is on devices and what on their host.
#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "plan/job_plan.hpp"
#include "plan/memory.hpp"
#include "plan/process_plan.hpp"

namespace troupe {
namespace {

struct Needs {
  std::size_t rank = 0;   ///< of rank 0, on its device
  std::size_t saved = 0;  ///< of that, by offloading
  std::size_t host = 0;   ///< for rank 0
  std::size_t offloaded = 0;
  std::size_t parameters = 0;
};

ProcessPlan Processes(const JobPlan& plan) { return ProcessPlan(plan.config().cluster); }

/// Without copies for checkpoints.
Needs NeedsWith(std::vector<std::string> overrides) {
  overrides.emplace_back("checkpoint.async=false");
  const JobPlan plan(LoadConfig("configs/shapes_colocated.toml", overrides).config);
  const auto stages = StageNeeds(plan, Processes(plan));
  Needs needs;
  needs.rank = RankNeeds(stages).at(0);
  needs.saved = RankSavings(stages).at(0);
  needs.host = HostNeeds(plan, Processes(plan), stages).at(0);
  for (const StageNeed& stage : stages) {
    needs.offloaded += stage.memory.offloaded;
    needs.parameters += stage.memory.parameters;
  }
  return needs;
}

}  // namespace

TEST_CASE("the offloaded copies are memory of the host, too", "[cli]") {
  const Needs kept = NeedsWith({});
  CHECK(kept.host == kept.rank);
  const Needs away = NeedsWith({"modules.vision.offload=state"});
  CHECK(away.offloaded > 0);
  CHECK(away.saved > 0);
  CHECK(away.host == kept.rank - away.saved + away.offloaded);
}

TEST_CASE("activations that leave are memory of the host instead", "[cli]") {
  const Needs kept = NeedsWith({});
  const Needs away = NeedsWith({"modules.language.offload_activations=auto"});
  CHECK(away.rank < kept.rank);
  CHECK(away.host > kept.host);  // those of three layers are on both
}

TEST_CASE("rows of a window wait on a GPU or on its host", "[cli]") {
  const std::string cuda = "cluster.backend=cuda";
  const auto stages = [&cuda](const std::string& override) {
    const JobPlan plan(LoadConfig("configs/shapes_colocated.toml", {cuda, override}).config);
    return StageNeeds(plan, Processes(plan));
  };
  std::size_t rows = 0;
  for (const StageNeed& stage : stages("modules.vision.offload_results=false")) {
    CHECK(stage.rows_away == 0);
    rows += stage.rows;
  }
  CHECK(rows > 0);
  std::size_t left = 0;
  std::size_t away = 0;
  for (const StageNeed& stage : stages("modules.vision.offload_results=true")) {
    left += stage.rows;
    away += stage.rows_away;
  }
  CHECK(2 * away == rows);  // gradients wait on the device
  CHECK(left < rows);
}

TEST_CASE("checkpoints are copied once in every layout, where they are copied at all", "[cli]") {
  const auto copied = [](std::vector<std::string> overrides) {
    const JobPlan plan(LoadConfig("configs/shapes.toml", overrides).config);
    std::size_t sum = 0;
    for (const auto& [rank, bytes] : SnapshotNeeds(StageNeeds(plan, Processes(plan)))) sum += bytes;
    return sum;
  };
  // 12 bytes for each parameter.
  const std::size_t one =
      copied({"modules.language.layout={}", "modules.language.ranks=0", "modules.vision.layout={}",
              "modules.vision.ranks=1", "cluster.ranks=2"});
  CHECK(one > 3'000'000);
  CHECK(one % 12 == 0);
  CHECK(copied({}) == one);
  CHECK(copied({"modules.language.layout={tp=2, dp=2}"}) == one);
  CHECK(copied({"modules.language.layout={dp=4}", "modules.language.optimizer.shard=data"}) == one);
  CHECK(copied({"modules.vision.frozen=true"}) < one);
  CHECK(copied({"checkpoint.async=false"}) == 0);
  CHECK(copied({"checkpoint.every_minutes=0"}) == 0);
  CHECK(copied({"checkpoint.every_minutes=0", "checkpoint.every=7"}) == one);
  CHECK(copied({"checkpoint.async=false", "checkpoint.replicas=1"}) == one);

  const JobPlan plan(LoadConfig("configs/shapes.toml", {}).config);
  const auto stages = StageNeeds(plan, Processes(plan));
  const JobPlan without(LoadConfig("configs/shapes.toml", {"checkpoint.async=false"}).config);
  CHECK(HostNeeds(plan, Processes(plan), stages).at(0) ==
        HostNeeds(without, Processes(without), StageNeeds(without, Processes(without))).at(0) +
            SnapshotNeeds(stages).at(0));
}

// n0 has the language model with tp 2 pp 2, n1 the encoder with dp 4.
TEST_CASE("two mirrors of each state are held, own and of others", "[cli]") {
  const auto with = [](const std::string& replicas, const std::string& nodes) {
    return JobPlan(LoadConfig("configs/shapes.toml",
                              {"checkpoint.replicas=" + replicas, "cluster.nodes=" + nodes})
                       .config);
  };
  const JobPlan none = with("0", "2");
  CHECK(MirrorNeeds(none, Processes(none), StageNeeds(none, Processes(none))).empty());
  const JobPlan alone = with("1", "1");
  CHECK(MirrorNeeds(alone, Processes(alone), StageNeeds(alone, Processes(alone))).empty());

  const auto copied = SnapshotNeeds(StageNeeds(none, Processes(none)));
  const std::size_t language = copied.at(0) + copied.at(1) + copied.at(2) + copied.at(3);
  const std::size_t vision = copied.at(4);
  const JobPlan one = with("1", "2");
  CHECK(SnapshotNeeds(StageNeeds(one, Processes(one))) == copied);
  const auto sent = MirrorNeeds(one, Processes(one), StageNeeds(one, Processes(one)));
  CHECK(sent.at(0).sent == language);
  CHECK(sent.at(1).sent == vision);
  CHECK(sent.at(0).held == 3 * language + 2 * vision);
  CHECK(sent.at(1).held == 2 * language + 3 * vision);
  CHECK(HostNeeds(one, Processes(one), StageNeeds(one, Processes(one))).at(4) ==
        HostNeeds(none, Processes(none), StageNeeds(none, Processes(none))).at(4) +
            sent.at(1).held);

  // Frozen values are in the files, but copied only once. A folder would have them itself.
  const JobPlan frozen(
      LoadConfig("configs/shapes.toml",
                 {"checkpoint.replicas=1", "cluster.nodes=2", "modules.vision.frozen=true"})
          .config);
  const auto kept = MirrorNeeds(frozen, Processes(frozen), StageNeeds(frozen, Processes(frozen)));
  const std::size_t projector = SnapshotNeeds(StageNeeds(frozen, Processes(frozen))).at(4);
  CHECK(projector < vision);
  CHECK(kept.at(1).sent == projector + (vision - projector) / 3);
  CHECK(kept.at(0).held == 3 * language + 2 * kept.at(1).sent);

  // n2 and n3 have two replicas of the encoder each: the second node makes the mirror.
  const JobPlan four = with("1", "4");
  CHECK(SnapshotNeeds(StageNeeds(four, Processes(four))).at(6) == vision);
  const auto made = MirrorNeeds(four, Processes(four), StageNeeds(four, Processes(four)));
  CHECK(made.at(2).sent == 0);
  CHECK(made.at(2).held == 2 * (copied.at(2) + copied.at(3)) + 3 * vision);  // from n1, and own
  CHECK(made.at(3).held == 2 * vision);  // it writes nothing to a disk
}

TEST_CASE("ranks on GPUs need of their host what is made or lies there", "[cli]") {
  const Needs kept = NeedsWith({"cluster.backend=cuda"});
  CHECK(kept.host == kept.parameters);
  const Needs away = NeedsWith({"cluster.backend=cuda", "modules.vision.offload=state"});
  CHECK(away.offloaded > away.parameters);
  CHECK(away.host == away.offloaded);
}

}  // namespace troupe
