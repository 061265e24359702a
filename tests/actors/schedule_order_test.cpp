// The order that emerges from messages, compared with what the field calls 1F1B.
#include <catch2/catch.hpp>

#include "tests/actors/job_fixture.hpp"

namespace troupe {
namespace {

/// Textbook 1F1B of a stage: warm-up forwards, then one forward one backward, then cool-down.
std::string Textbook(int warm_up, int microbatches) {
  std::vector<Pass> order;
  const int first = std::min(warm_up, microbatches);
  for (int m = 0; m < first; ++m) order.push_back({PassKind::kForward, m});
  for (int m = 0; m < microbatches; ++m) {
    order.push_back({PassKind::kBackward, m});
    if (first + m < microbatches) order.push_back({PassKind::kForward, first + m});
  }
  return ToString(order);
}

}  // namespace

TEST_CASE_METHOD(JobFixture, "a chain of 1 to 8 stages runs textbook 1F1B", "[actors]") {
  for (int stages = 1; stages <= 8; ++stages) {
    for (const int microbatches : {1, 3, 8, 12}) {
      Layout layout;
      layout.pp = stages;
      const Config config = SyntheticConfigOf({{"language", layout}}, {});
      REQUIRE(Run(config, TrainingRounds(2, microbatches)).failure.empty());
      for (int s = 0; s < stages; ++s) {
        INFO(stages << " stages, " << microbatches << " microbatches, stage " << s);
        const std::string name = "language.s" + std::to_string(s);
        CHECK(Order(name, 0) == Textbook(stages - s, microbatches));
        CHECK(Order(name, 1) == Textbook(stages - s, microbatches));
      }
    }
  }
}

TEST_CASE_METHOD(JobFixture, "a chain over a boundary warms up like one pipeline", "[actors]") {
  Layout pp2;
  pp2.pp = 2;
  const Config config =
      SyntheticConfigOf({{"vision", pp2}, {"language", pp2}}, {{"vision", "language"}});
  REQUIRE(Run(config, TrainingRounds(1, 8)).failure.empty());
  CHECK(Order("vision.s0") == Textbook(4, 8));
  CHECK(Order("vision.s1") == Textbook(3, 8));
  CHECK(Order("language.s0") == Textbook(2, 8));
  CHECK(Order("language.s1") == Textbook(1, 8));
}

TEST_CASE_METHOD(JobFixture, "the graph of figure 4(a): encoders pp2 and pp1, language pp3",
                 "[actors]") {
  Layout pp1, pp2, pp3;
  pp2.pp = 2;
  pp3.pp = 3;
  const Config config = SyntheticConfigOf({{"encoder1", pp2}, {"encoder2", pp1}, {"language", pp3}},
                                          {{"encoder1", "language"}, {"encoder2", "language"}});
  REQUIRE(Run(config, TrainingRounds(1, 8)).failure.empty());
  CHECK(Order("encoder1.s0") == Textbook(5, 8));
  CHECK(Order("encoder1.s1") == Textbook(4, 8));
  CHECK(Order("encoder2.s0") == Textbook(4, 8));  // by its distance to the sink, not from a source
  CHECK(Order("language.s0") == Textbook(3, 8));
  CHECK(Order("language.s1") == Textbook(2, 8));
  CHECK(Order("language.s2") == Textbook(1, 8));
}

TEST_CASE_METHOD(JobFixture, "a branch into two sinks waits for both gradients", "[actors]") {
  Layout pp1, pp2, pp3;
  pp2.pp = 2;
  pp3.pp = 3;
  const Config config = SyntheticConfigOf({{"vision", pp2}, {"caption", pp1}, {"language", pp3}},
                                          {{"vision", "caption"}, {"vision", "language"}});
  REQUIRE(Run(config, TrainingRounds(1, 6)).failure.empty());
  CHECK(Order("vision.s0") == Textbook(5, 6));  // the longer branch decides the warm-up
  CHECK(Order("vision.s1") == Textbook(4, 6));
  CHECK(Order("caption.s0") == Textbook(1, 6));
  CHECK(Order("language.s0") == Textbook(3, 6));
}

TEST_CASE_METHOD(JobFixture, "a diamond joins what it split", "[actors]") {
  Layout pp1, pp2;
  pp2.pp = 2;
  const Config config = SyntheticConfigOf({{"a", pp1}, {"b", pp2}, {"c", pp1}, {"d", pp1}},
                                          {{"a", "b"}, {"a", "c"}, {"b", "d"}, {"c", "d"}});
  REQUIRE(Run(config, TrainingRounds(1, 6)).failure.empty());
  CHECK(Order("a.s0") == Textbook(4, 6));
  CHECK(Order("b.s0") == Textbook(3, 6));
  CHECK(Order("b.s1") == Textbook(2, 6));
  CHECK(Order("c.s0") == Textbook(2, 6));
  CHECK(Order("d.s0") == Textbook(1, 6));
}

TEST_CASE_METHOD(JobFixture, "credits below the distance to the sink hold the encoder back",
                 "[actors]") {
  Layout pp1, pp3;
  pp3.pp = 3;
  Config config = SyntheticConfigOf({{"vision", pp1}, {"language", pp3}}, {{"vision", "language"}});
  config.edges[0].credits = 2;
  REQUIRE(Run(config, TrainingRounds(1, 6)).failure.empty());
  CHECK(Order("vision.s0") == Textbook(2, 6));
}

}  // namespace troupe
