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

TEST_CASE("the next backward follows from the order, whatever has arrived", "[schedule]") {
  StageCounters c = Running(2, 0);
  c.activations = 0;
  CHECK(NextBackward(c, {.limit = 2}) == 0);
  CHECK_FALSE(NextBackward(c, {.limit = 3}));
  CHECK(NextBackward(Running(3, 2), {.limit = 2}) == 2);
  CHECK(NextBackward(Running(100, 97), {.limit = 4}) == 97);
  CHECK_FALSE(NextBackward(Running(100, 100), {.limit = 4}));
  CHECK_FALSE(NextBackward(Running(99, 0), {.kind = RuleKind::kGpipe}));
  c = Running(100, 98);
  c.weights = 97;
  CHECK(NextBackward(
            c, {.kind = RuleKind::kZbH1, .limit = 2, .weight_limit = 2, .splits_backward = true}) ==
        98);
}

TEST_CASE("NextPass follows the table in stage_rule.hpp", "[schedule]") {
  StageCounters c = Running(0, 0);

  SECTION("nothing has arrived: nothing to run") {
    c.activations = 0;
    CHECK_FALSE(NextPass(c, {.limit = 2}));
  }
  SECTION("an activation alone starts a forward") {
    c.activations = 1;
    CHECK(NextPass(c, {.limit = 2}) == Pass{PassKind::kForward, 0});
  }
  SECTION("while warming up, the forward goes first when both are ready") {
    c.forwards = 1;
    c.gradients = 1;
    CHECK(NextPass(c, {.limit = 2}) == Pass{PassKind::kForward, 1});
  }
  SECTION("after the warm-up, the backward goes first when both are ready") {
    c = Running(3, 2);
    c.gradients = 3;
    CHECK(NextPass(c, {.limit = 2}) == Pass{PassKind::kBackward, 2});
  }
  SECTION("the limit holds a forward back until a backward has started") {
    c = Running(2, 0);
    CHECK_FALSE(NextPass(c, {.limit = 2}));
    c.gradients = 1;
    CHECK(NextPass(c, {.limit = 2}) == Pass{PassKind::kBackward, 0});
  }
  SECTION("units of a round that has not begun stay where they are") {
    c = Running(4, 4);
    c.horizon = 4;
    CHECK_FALSE(NextPass(c, {.limit = 2}));
  }
  SECTION("every round warms up anew") {
    c = Running(9, 8);
    c.round_begin = 8;
    c.gradients = 9;
    CHECK(NextPass(c, {.limit = 2}) == Pass{PassKind::kForward, 9});
  }
  SECTION("busy devices run nothing") {
    c.busy = true;
    CHECK_FALSE(NextPass(c, {.limit = 2}));
  }
}

TEST_CASE("gpipe runs no backward before the last forward of the round", "[schedule]") {
  const StageRule rule{.kind = RuleKind::kGpipe};
  StageCounters c = Running(3, 0);
  c.gradients = 3;
  c.horizon = 4;
  CHECK(NextPass(c, rule) == Pass{PassKind::kForward, 3});
  c.activations = 3;
  CHECK_FALSE(NextPass(c, rule));  // the last one is still to come
  c.forwards = c.activations = 4;
  CHECK(NextPass(c, rule) == Pass{PassKind::kBackward, 0});
}

TEST_CASE("zb-h1 runs weights that are owed, then forwards, then backwards, and waits for each",
          "[schedule]") {
  const StageRule rule{.kind = RuleKind::kZbH1,
                       .limit = 2,
                       .weight_limit = 4,
                       .splits_backward = true};  // two backwards may wait for their weights
  StageCounters c = Running(3, 2);
  c.gradients = 3;
  CHECK(NextPass(c, rule) == Pass{PassKind::kForward, 3});
  c.activations = 3;
  CHECK_FALSE(NextPass(c, rule));  // the forward is due: neither backward 2 nor weights instead
  c.activations = c.forwards = 4;  // two in flight: the limit
  CHECK(NextPass(c, rule) == Pass{PassKind::kBackward, 2});
  c.gradients = 2;
  CHECK_FALSE(NextPass(c, rule));  // the backward is due: no weights instead
  c.gradients = c.backwards = 3;   // one in flight, and one more than two wait for their weights
  CHECK(NextPass(c, rule) == Pass{PassKind::kWeight, 0});
  c.weights = 1;
  c.activations = 5;
  CHECK(NextPass(c, rule) == Pass{PassKind::kForward, 4});
  c.busy = true;
  CHECK_FALSE(NextPass(c, rule));
}

TEST_CASE("zb-h1 takes the backward that is there where the forward may lack room", "[schedule]") {
  const StageRule rule{.kind = RuleKind::kZbH1,
                       .limit = 3,
                       .weight_limit = 4,
                       .forwards_may_lack_room = true,
                       .splits_backward = true};
  StageCounters c = Running(2, 1);
  c.activations = 2;
  CHECK_FALSE(NextPass(c, rule));  // not even then are weights begun that are not owed
  c.gradients = 2;
  CHECK(NextPass(c, rule) == Pass{PassKind::kBackward, 1});
  c.activations = 3;
  CHECK(NextPass(c, rule) == Pass{PassKind::kForward, 2});
}

TEST_CASE("a fixed 1f1b runs one order, whatever has arrived", "[schedule]") {
  const StageRule rule{.limit = 2, .fixed = true};
  StageCounters c = Running(1, 0);
  c.activations = 1;
  c.gradients = 1;
  CHECK_FALSE(NextPass(c, rule));  // the second forward is due
  c.activations = 4;
  CHECK(NextPass(c, rule) == Pass{PassKind::kForward, 1});
  c.forwards = 2;
  CHECK(NextPass(c, rule) == Pass{PassKind::kBackward, 0});
  c.gradients = 0;
  CHECK_FALSE(NextPass(c, rule));
  c.gradients = c.backwards = 1;
  CHECK(NextPass(c, rule) == Pass{PassKind::kForward, 2});
}

TEST_CASE("a fixed order empties a window before the next one may arrive", "[schedule]") {
  const StageRule rule{.limit = 4, .fixed = true, .window = 2};
  StageCounters c = Running(2, 0);
  c.activations = 3;
  c.gradients = 1;
  CHECK(NextPass(c, rule) == Pass{PassKind::kBackward, 0});
  c.backwards = 1;
  CHECK_FALSE(NextPass(c, rule));
  c.gradients = c.backwards = 2;
  CHECK(NextPass(c, rule) == Pass{PassKind::kForward, 2});
}

TEST_CASE("zb-h1 leaves no weights to the next round", "[schedule]") {
  const StageRule rule{
      .kind = RuleKind::kZbH1, .limit = 2, .weight_limit = 4, .splits_backward = true};
  StageCounters c = Running(5, 5);
  c.activations = c.horizon = c.gradients = 5;
  c.weights = 3;
  CHECK(NextPass(c, rule) == Pass{PassKind::kWeight, 3});
  c.weights = 4;
  CHECK(NextPass(c, rule) == Pass{PassKind::kWeight, 4});
  c.weights = 5;
  CHECK_FALSE(NextPass(c, rule));
  CHECK(AllStarted(c, rule));
}

TEST_CASE("a stage with nothing to train runs zb-h1 as 1f1b", "[schedule]") {
  const StageRule rule{.kind = RuleKind::kZbH1, .limit = 2, .weight_limit = 4};
  StageCounters c = Running(3, 2);
  c.gradients = 3;
  CHECK(NextPass(c, rule) == Pass{PassKind::kBackward, 2});
}

TEST_CASE("an order is followed pass by pass, in every round anew", "[schedule]") {
  using enum PassKind;
  const StageRule rule{.kind = RuleKind::kOrdered,
                       .splits_backward = true,
                       .order = {{kForward, 0},
                                 {kBackward, 0},
                                 {kForward, 1},
                                 {kWeight, 0},
                                 {kBackward, 1},
                                 {kWeight, 1}}};
  StageCounters c;
  for (const std::int64_t round_begin : {0, 2}) {
    c.round_begin = round_begin;
    c.horizon = c.activations = round_begin + 2;
    std::vector<Pass> ran;
    for (auto next = NextPass(c, rule); next; next = NextPass(c, rule)) {
      CountStarted(c, *next);
      c.gradients = c.forwards;
      next->unit -= round_begin;
      ran.push_back(*next);
    }
    CHECK(ran == rule.order);
    CHECK(AllStarted(c, rule));
  }
  c.round_begin = 4;
  c.horizon = 6;
  CHECK_FALSE(NextPass(c, rule));  // its forward has not arrived, and nothing else is next
  c.activations = 5;
  CHECK(NextPass(c, rule) == Pass{kForward, 4});
}

TEST_CASE("an order prints as text", "[schedule]") {
  CHECK(ToString(std::vector<Pass>{}).empty());
  CHECK(ToString(std::vector<Pass>{{PassKind::kForward, 0},
                                   {PassKind::kForward, 12},
                                   {PassKind::kBackward, 0},
                                   {PassKind::kWeight, 0}}) == "F0 F12 B0 W0");
}

}  // namespace troupe
