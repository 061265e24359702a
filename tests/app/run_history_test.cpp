#include <nlohmann/json.hpp>

#include <catch2/catch.hpp>

#include "app/progress.hpp"

namespace troupe {
namespace {

constexpr const char* kBefore =
    R"({"kind":"held_out","step":0,"loss":5.5,"accuracy":0.02,"content_accuracy":0.01})";

std::string Step(int step) {
  return R"({"kind":"step","step":)" + std::to_string(step) +
         R"(,"loss":5,"seconds":0.25,"tokens_per_second":8000,"samples_per_second":)" +
         std::to_string(step * 100) + "}";
}

RunHistory Of(const std::vector<std::string>& lines) {
  RunHistory run;
  for (const std::string& line : lines) run.Add(line);
  return run;
}

}  // namespace

TEST_CASE("a run that is complete is summed up by its speed", "[cli]") {
  const RunHistory run = Of({kBefore, Step(1), Step(2), kBefore});
  CHECK(SummaryOf(run, 2) == "trained 2 steps in 0.5s: 8.0k tok/s, 150 samples/s\n");
}

TEST_CASE("a run that is interrupted says how far it came", "[cli]") {
  CHECK(SummaryOf(Of({kBefore, Step(1), Step(2)}), 1000) ==
        "interrupted after step 2 of 1000, 0.5s: 8.0k tok/s, 150 samples/s\n");
  CHECK(SummaryOf(Of({kBefore}), 1000) == "interrupted before the first of 1000 steps\n");
}

TEST_CASE("a run knows the files that its earlier starts replaced", "[cli]") {
  const ReplacedItem item{true, 1, 7, "a.tar: 7.png", "a.tar: row 7: not a png; replaced by zeros"};
  nlohmann::ordered_json line = {{"kind", "held_out"}, {"step", 0}};
  line["replaced_files"].push_back(ReplacedJson(item));
  const RunHistory run = Of({Step(1), line.dump(), line.dump(), R"({"replaced_files":3})"});
  CHECK(run.replaced == std::set<ReplacedItem>{item});
}

TEST_CASE("a line that was cut off, or without a speed, does not end a summary", "[cli]") {
  CHECK(SummaryOf(Of({Step(1), R"({"kind":"st)"}), 1) ==
        "trained 1 step in 0.2s: 8.0k tok/s, 100 samples/s\n");
  CHECK(SummaryOf(Of({R"({"kind":"step","step":1,"loss":null,"seconds":2})"}), 1) ==
        "trained 1 step in 2.0s\n");
}

}  // namespace troupe
