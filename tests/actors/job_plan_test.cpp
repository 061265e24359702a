#include "actors/job_plan.hpp"

#include <catch2/catch.hpp>

#include "configs/loader.hpp"

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

TEST_CASE("a colocated group is one lock-step set, an island beside it another", "[actors]") {
  const JobPlan plan(Load("shapes_mixed"));  // vision and language on 0-3, detail on 4-7
  for (const int rank : {1, 2, 3}) CHECK(plan.LockStepOf(rank) == plan.LockStepOf(0));
  for (const int rank : {5, 6, 7}) CHECK(plan.LockStepOf(rank) == plan.LockStepOf(4));
  CHECK(plan.LockStepOf(0) != plan.LockStepOf(4));
  CHECK(plan.ShardsOn(2).size() == 2);
  CHECK(plan.ShardsOn(5).size() == 1);
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
  CHECK(plan.modules()[0].microbatches_per_unit == 0);  // window = "step"
}

}  // namespace troupe
