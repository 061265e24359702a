// Passes that fail, and messages that a stage refuses.
#include <catch2/catch.hpp>

#include "tests/actors/stage_fixture.hpp"

namespace troupe {

TEST_CASE_METHOD(StageFixture, "a failed pass fails every request that waits for the stage",
                 "[actors][stage]") {
  SetLinks(2);
  ReadData();
  Open();
  const auto report = Begin(0, 2);
  const auto running = Activate(0, 0);
  const auto other_link = Activate(0, 1);
  const auto fed = GiveInput(0, std::make_shared<Inputs>());
  const auto waiting = Activate(1, 0);
  const auto fed_ahead = GiveInput(1, std::make_shared<Inputs>());
  Refuse<ToSet<RunForward>>(devices, "rank 5: no memory");
  const std::vector<std::string> expected = {"rank 5: no memory"};
  CHECK(report->errors == expected);
  for (const auto& asked : {running, other_link, waiting}) CHECK(asked->errors == expected);
  CHECK(fed->errors == expected);
  CHECK(fed_ahead->errors == expected);
  CHECK(abort->cause() == "rank 5: no memory");
  // So does whatever comes later, and nothing is run for it.
  CHECK(Activate(1, 1)->errors == expected);
  CHECK(Begin(1, 2)->errors == expected);
  CHECK(Passes() == "F0");
}

TEST_CASE_METHOD(StageFixture, "a failed backward fails the activations that were forwarded",
                 "[actors][stage]") {
  Open();
  const auto report = Begin(0, 2);
  const auto first = Activate(0);
  const auto second = Activate(1);
  FinishForward();
  FinishForward();
  GiveGradient(0);
  Refuse<ToSet<RunBackward>>(devices, "rank 4: broken");
  const std::vector<std::string> expected = {"rank 4: broken"};
  CHECK(first->errors == expected);
  CHECK(second->errors == expected);
  CHECK(report->errors == expected);
  GiveGradient(1);  // comes too late
  CHECK(Passes() == "F0 F1 B0");
}

TEST_CASE_METHOD(StageFixture, "an activation of another round is refused by name",
                 "[actors][stage]") {
  Open();
  Begin(0, 2);
  const auto good = Activate(0);
  const auto wrong = Activate(2);  // the first of the next round
  const std::string expected =
      "language.s1 dp0: expected the activation of microbatch 1 from stage language.s0 dp0 "
      "(step 1 mb 1), got 2";
  CHECK(wrong->errors == std::vector<std::string>{expected});
  CHECK(good->errors == std::vector<std::string>{expected});
  CHECK(abort->cause() == expected);
}

TEST_CASE_METHOD(StageFixture, "gradients, inputs and rounds out of turn are refused by name",
                 "[actors][stage]") {
  SECTION("a gradient") {
    Open();
    Begin(0, 2);
    Activate(0);
    FinishForward();
    GiveGradient(1);
    CHECK(abort->cause() ==
          "language.s1 dp0: expected the gradient of microbatch 0 from stage language.s2 dp0 "
          "(step 1 mb 0), got 1");
  }
  SECTION("an input") {
    ReadData();
    Open();
    Begin(0, 2);
    CHECK(GiveInput(1, std::make_shared<Inputs>())->errors ==
          std::vector<std::string>{"language.s1 dp0: expected the input of microbatch 0 from feed "
                                   "of language dp0 (step 1 mb 0), got 1"});
  }
  SECTION("a round") {
    Open();
    Begin(0, 1);
    CHECK(Begin(2, 1)->errors ==
          std::vector<std::string>{"language.s1 dp0: expected round 1 from director, got 2"});
  }
}

TEST_CASE_METHOD(StageFixture, "rows other than those that the stage's data names are refused",
                 "[actors][stage]") {
  ReadData();
  Open();
  Begin(0, 1);
  auto data = std::make_shared<Inputs>();
  data->expected["language"] = {{0, 1}, {2, 3}};
  GiveInput(0, data);
  auto rows = std::make_shared<RowTable>(RowTable{{0, 1}, {3, 2}});
  const auto asked = Ask<Gradient>(stage, Activation{0, 0, {RowsOf({1, 2, 3, 4, 5})}, rows, {}});
  CHECK(asked->errors ==
        std::vector<std::string>{"language.s1 dp0: edge from language, step 1 mb 0: expected 2 "
                                 "rows of sample 0, got 3 rows of sample 0"});
  CHECK(Passes().empty());
}

}  // namespace troupe
