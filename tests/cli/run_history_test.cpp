#include "cli/run_history.hpp"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

constexpr const char* kBefore =
    R"({"kind":"held_out","step":0,"loss":5.5,"accuracy":0.02,"content_accuracy":0.01})";

std::string Step(int step, double loss) {
  return R"({"kind":"step","step":)" + std::to_string(step) + R"(,"loss":)" + std::to_string(loss) +
         R"(,"seconds":0.25})";
}

RunHistory Of(const std::vector<std::string>& lines) {
  RunHistory run;
  for (const std::string& line : lines) run.Add(line);
  return run;
}

}  // namespace

TEST_CASE("a run that is complete is summed up with what it scored before and after", "[cli]") {
  const RunHistory run = Of({kBefore, Step(1, 5.0), Step(2, 4.0),
                             R"({"kind":"held_out","step":2,"loss":3.5,"accuracy":0.5,)"
                             R"("content_accuracy":0.25})"});
  CHECK(SummaryOf(run, 2) ==
        "trained 2 steps in 0.5s: loss 5.0000 -> 4.0000\n"
        "held out before: loss 5.5000, next token 2.0%, content words 1.0%\n"
        "held out after:  loss 3.5000, next token 50.0%, content words 25.0%\n");
}

TEST_CASE("a run that is interrupted is not said to have been evaluated after it", "[cli]") {
  CHECK(SummaryOf(Of({kBefore, Step(1, 5.0), Step(2, 4.0)}), 1000) ==
        "interrupted after step 2 of 1000: 0.5s, loss 5.0000 -> 4.0000\n"
        "held out before: loss 5.5000, next token 2.0%, content words 1.0%\n");
  CHECK(SummaryOf(Of({kBefore}), 1000) ==
        "interrupted before the first of 1000 steps\n"
        "held out before: loss 5.5000, next token 2.0%, content words 1.0%\n");
  CHECK(SummaryOf(Of({}), 1000) == "interrupted before the first of 1000 steps\n");
}

TEST_CASE("a line that was cut off, or a loss that is no number, does not end a summary", "[cli]") {
  CHECK(SummaryOf(Of({Step(1, 5.0), R"({"kind":"st)"}), 1) ==
        "trained 1 steps in 0.2s: loss 5.0000 -> 5.0000\n");
  CHECK(SummaryOf(Of({R"({"kind":"step","step":1,"loss":null,"seconds":2})"}), 1) ==
        "trained 1 steps in 2.0s: loss nan -> nan\n");
}

}  // namespace troupe
