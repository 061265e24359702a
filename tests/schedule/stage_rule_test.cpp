#include "schedule/stage_rule.hpp"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

/// A stage in the middle of an endless round, with everything it could ask for already there.
StageCounters Running(std::int64_t forwards, std::int64_t backwards) {
  StageCounters c;
  c.activations = 100;
  c.horizon = 100;
  c.forwards = forwards;
  c.backwards = backwards;
  c.gradients = backwards;
  return c;
}

}  // namespace

TEST_CASE("NextPass follows the table in stage_rule.hpp", "[schedule]") {
  StageCounters c = Running(0, 0);

  SECTION("nothing has arrived: nothing to run") {
    c.activations = 0;
    CHECK_FALSE(NextPass(c, 2));
  }
  SECTION("an activation alone starts a forward") {
    c.activations = 1;
    CHECK(NextPass(c, 2) == Pass{PassKind::kForward, 0});
  }
  SECTION("while warming up, the forward goes first when both are ready") {
    c.forwards = 1;
    c.gradients = 1;
    CHECK(NextPass(c, 2) == Pass{PassKind::kForward, 1});
  }
  SECTION("after the warm-up, the backward goes first when both are ready") {
    c = Running(3, 2);
    c.gradients = 3;
    CHECK(NextPass(c, 2) == Pass{PassKind::kBackward, 2});
  }
  SECTION("the limit holds a forward back until a backward has started") {
    c = Running(2, 0);
    CHECK_FALSE(NextPass(c, 2));
    c.gradients = 1;
    CHECK(NextPass(c, 2) == Pass{PassKind::kBackward, 0});
  }
  SECTION("units of a round that has not begun stay where they are") {
    c = Running(4, 4);
    c.horizon = 4;
    CHECK_FALSE(NextPass(c, 2));
  }
  SECTION("every round warms up anew") {
    c = Running(9, 8);
    c.round_begin = 8;
    c.gradients = 9;
    CHECK(NextPass(c, 2) == Pass{PassKind::kForward, 9});
  }
  SECTION("busy devices run nothing") {
    c.busy = true;
    CHECK_FALSE(NextPass(c, 2));
  }
}

TEST_CASE("an order prints as text", "[schedule]") {
  CHECK(ToString(std::vector<Pass>{}).empty());
  CHECK(ToString(std::vector<Pass>{
            {PassKind::kForward, 0}, {PassKind::kForward, 12}, {PassKind::kBackward, 0}}) ==
        "F0 F12 B0");
}

}  // namespace troupe
