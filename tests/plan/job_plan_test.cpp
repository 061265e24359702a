#include "plan/job_plan.hpp"

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "transport/wait.hpp"

namespace troupe {
namespace {

Config Load(const std::string& name, std::vector<std::string> overrides = {}) {
  return LoadConfig("configs/" + name + ".toml", overrides).config;
}

}  // namespace

TEST_CASE("disjoint modules have lock-step sets of their own, one per stage", "[actors]") {
  const JobPlan plan(Load("shapes"));  // vision dp4 on 4-7, language tp2 pp2 on 0-3
  CHECK(plan.LockStepOf(0) == plan.LockStepOf(1));
  CHECK(plan.LockStepOf(0) != plan.LockStepOf(2));
  CHECK(plan.LockStepOf(4) == plan.LockStepOf(7));  // replicas meet in the gradient reduction
  CHECK(plan.LockStepOf(4) != plan.LockStepOf(0));
}

TEST_CASE("a colocated group is one lock-step set, an island next to it another", "[actors]") {
  const JobPlan plan(Load("shapes_mixed"));  // vision and language on 0-3, detail on 4-7
  for (const int rank : {1, 2, 3}) CHECK(plan.LockStepOf(rank) == plan.LockStepOf(0));
  for (const int rank : {5, 6, 7}) CHECK(plan.LockStepOf(rank) == plan.LockStepOf(4));
  CHECK(plan.LockStepOf(0) != plan.LockStepOf(4));
  CHECK(plan.ShardsOn(2).size() == 2);
  CHECK(plan.ShardsOn(5).size() == 1);
}

TEST_CASE("actors are known by the numbers of the graph, and called by its names", "[actors]") {
  const JobPlan plan(Load("shapes"));  // the stages vision.s0, language.s0 and language.s1
  CHECK(plan.StageActor(2, 1) ==
        ActorId{.kind = ActorKind::kStage, .stage = 2, .replica = 1, .of = "language.s1"});
  CHECK(plan.FeedActor(1, 2) ==
        ActorId{.kind = ActorKind::kFeed, .stage = 1, .replica = 2, .of = "language"});
  CHECK(ToString(plan.PassLockStepActor(0, 3)) == "lock step of vision.s0 dp3");
  REQUIRE(plan.updates().size() == 3);
  CHECK(ToString(plan.UpdateActor(1)) == "update of language.s0");
  const int edge = plan.graph().stages()[0].out.at(0);
  const ActorId source = plan.ActorAt(edge, EdgeEnd::kSource, 3);
  const ActorId destination = plan.ActorAt(edge, EdgeEnd::kDestination, 1);
  CHECK(source.link == edge);
  const int hop = plan.graph().stages()[1].out.at(0);
  CHECK(plan.ActorAt(hop, EdgeEnd::kSource, 0) == plan.StageActor(2, 0));
  CHECK(plan.ActorAt(hop, EdgeEnd::kDestination, 0) == plan.StageActor(1, 0));
  CHECK(ToString(source) == "leader vision>language/source.3");
  CHECK(ToString(destination) == "leader vision>language/destination.1");
  CHECK(ToString(DeviceActor(6)) == "device 6");
  const JobPlan colocated(Load("shapes_colocated"));
  const int phase = colocated.graph().stages()[0].out.at(0);
  for (const EdgeEnd end : {EdgeEnd::kSource, EdgeEnd::kDestination}) {
    CHECK(ToString(colocated.ActorAt(phase, end, 0)) == "phase vision>language");
  }
}

TEST_CASE("a tied head couples the first and the last stage", "[actors]") {
  const JobPlan plan(Load("shapes", {"modules.language.tied_head=true"}));
  CHECK(plan.LockStepOf(0) == plan.LockStepOf(3));
  REQUIRE(plan.updates().size() == 2);  // vision; both language stages together
  CHECK(plan.updates()[1].stages.size() == 2);
  const JobPlan untied(Load("shapes"));
  CHECK(untied.updates().size() == 3);
}

TEST_CASE("a frozen encoder runs backward only for its projector", "[actors]") {
  const JobPlan plan(Load("shapes_frozen"));
  for (const StagePlan& stage : plan.stages()) {
    INFO(plan.graph().StageName(stage.stage));
    CHECK(stage.runs_backward);
  }
  const JobPlan all(
      Load("shapes", {"modules.vision.frozen=true", "edges.vision.language.through.frozen=true"}));
  CHECK_FALSE(all.stages()[0].runs_backward);
  CHECK_FALSE(all.stages()[0].trains);
  CHECK_FALSE(all.edges()[0].carries_gradient);
  CHECK(all.updates().size() == 2);
}

TEST_CASE("an inline encoder has no stage and no edge of its own", "[actors]") {
  const JobPlan plan(Load("shapes_inline"));
  CHECK(plan.modules().size() == 1);
  CHECK(plan.edges().empty());
}

TEST_CASE("a colocated encoder works per window, one at a time", "[actors]") {
  const JobPlan plan(Load("shapes_colocated"));
  CHECK(plan.modules()[0].colocated_encoder);
  CHECK(plan.stages()[0].limit == 1);
  CHECK(plan.modules()[0].units.In(6).count == 1);  // window = "step"
  CHECK(plan.modules()[0].units.In(6).microbatches_each == 6);
  CHECK(plan.modules()[1].units.In(6).count == 6);
}

}  // namespace troupe
