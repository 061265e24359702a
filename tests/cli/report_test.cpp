// What is read about runs after they have ended: the report, its values as CSV, and two runs
// compared.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "app/run_facts.hpp"
#include "tests/cli/run_folder.hpp"
#include "tests/data/scratch_folder.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

using Catch::Contains;
using Catch::StartsWith;

const char* const kMetrics =
    R"({"kind":"held_out","step":0,"loss":5.5,"accuracy":0.1}
{"kind":"step","step":1,"loss":5.0,"gradient_norm":null,"seconds":2.0}
{"kind":"step","step":2,"loss":4.0,"gradient_norm":1.5,"seconds":0.5}
{"kind":"step","step":3,"loss":3.0,"gradient_norm":2.5,"seconds":0.25}
{"kind":"st)";

}  // namespace

TEST_CASE("metrics become series by key, without what is not finite or cut off", "[cli]") {
  const ScratchFolder folder;
  folder.Write("metrics.jsonl", kMetrics);
  const RunMetrics metrics = ReadMetrics(folder.path());
  CHECK(metrics.at("loss") == MetricSeries{{1, 5.0}, {2, 4.0}, {3, 3.0}});
  CHECK(metrics.at("gradient_norm") == MetricSeries{{2, 1.5}, {3, 2.5}});
  CHECK(metrics.at("held_out_loss") == MetricSeries{{0, 5.5}});
  CHECK(SeriesJson({{"loss", {{1, 5.0}}}}) == R"({"loss":[[1,5.0]]})");
  CHECK_THAT(SeriesCsv(metrics),
             StartsWith("step,gradient_norm,held_out_accuracy,held_out_loss,loss,seconds\n"
                        "0,,0.1,5.5,,\n1,,,,5.0,2.0\n2,1.5,,,4.0,0.5\n"));
  CHECK(MedianOf(metrics, "seconds") == 0.5);  // of the steps after the first
  CHECK(MedianOf(metrics, "nothing") == 0.0);
  CHECK(ReadMetrics(folder / "nowhere").empty());
}

TEST_CASE("two runs are compared at the last step that both have", "[cli]") {
  const RunMetrics longer = {{"loss", {{1, 5.0}, {2, 4.0}, {3, 3.0}}}, {"bubble", {{1, 0.5}}}};
  const RunMetrics shorter = {{"loss", {{1, 5.5}, {2, 4.5}}}, {"bubble", {{2, 0.25}}}};
  CHECK(LastCommon(longer, shorter, "loss") == CommonValue{2, 4.0, 4.5});
  CHECK(LastCommon(shorter, longer, "loss") == CommonValue{2, 4.5, 4.0});
  CHECK(LastCommon(longer, shorter, "bubble") == std::nullopt);
  CHECK(LastCommon(longer, shorter, "held_out_loss") == std::nullopt);
}

TEST_CASE("troupe report draws several runs on one page", "[cli]") {
  const RunFolder folder;
  REQUIRE(folder.Train({"run.name=first"}).exit_code == 0);
  REQUIRE(folder.Train({"run.name=second", "optimizer.learning_rate=0.002"}).exit_code == 0);
  std::vector<std::string> runs = folder.Runs();
  std::sort(runs.begin(), runs.end());
  const std::string out = folder / "both.html";
  const std::string csv = folder / "first.csv";
  const Outcome outcome =
      RunTroupe({"report", runs.at(0), runs.at(1) + "/", "--out", out, "--csv", csv});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains(out + ": 2 runs, "));
  const std::string page = BytesOf(out);
  CHECK_THAT(page, Contains("{\"report\":true,\"runs\":[{\"name\":\"first-") &&
                       Contains("{\"name\":\"second-") && Contains("\"learning_rate\":[[1,") &&
                       Contains("\"layout of language\":\"tp2 pp2\""));
  CHECK(page.find("http") == std::string::npos);
  CHECK_THAT(BytesOf(csv), StartsWith("step,") && Contains(",samples_per_second,"));
  const Outcome none = RunTroupe({"report", folder / "nowhere"});
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.err, Contains("troupe report: ") && Contains("expected a run directory"));
}

TEST_CASE("trace diff compares the losses of a separate and a colocated run", "[cli]") {
  const RunFolder folder;
  const std::vector<std::string> separate =
      folder.Arguments("train", "configs/shapes.toml", {"run.name=first"});
  // With two replicas of the language model the global batch stays the same.
  const std::vector<std::string> colocated =
      folder.Arguments("train", "configs/shapes_colocated.toml",
                       {"run.name=second", "run.steps=4", "schedule.microbatches=1"});
  REQUIRE(RunTroupe(separate).exit_code == 0);
  REQUIRE(RunTroupe(colocated).exit_code == 0);
  std::vector<std::string> runs = folder.Runs();
  std::sort(runs.begin(), runs.end());
  const Outcome outcome = RunTroupe({"trace", "diff", runs.at(0), runs.at(1)});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("layout of vision") && !Contains("global batch"));
  const auto loss = LastCommon(ReadMetrics(runs.at(0)), ReadMetrics(runs.at(1)), "loss");
  REQUIRE(loss);
  CHECK(loss->step == 3);
  CHECK(loss->before == Approx(loss->after).margin(1e-4));
  const std::vector<std::string> lines = LinesOf(outcome.out);
  const auto line = std::ranges::find_if(
      lines, [](const std::string& text) { return text.starts_with("of step 3 "); });
  REQUIRE(line != lines.end());
  CHECK_THAT(*line, Contains(" " + Fixed(loss->before, 4) + " ") &&
                        Contains(" " + Fixed(loss->after, 4) + " "));
}

TEST_CASE("trace diff begins with what differs, the speeds and a verdict", "[cli]") {
  const RunFolder folder;
  REQUIRE(folder.Train({"run.name=first"}).exit_code == 0);
  REQUIRE(folder.Train({"run.name=second", "schedule.microbatches=4", "run.seed=11"}).exit_code ==
          0);
  std::vector<std::string> runs = folder.Runs();
  std::sort(runs.begin(), runs.end());
  const Outcome outcome = RunTroupe({"trace", "diff", runs.at(0), runs.at(1)});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  const std::vector<std::string> lines = LinesOf(outcome.out);
  const auto line_of = [&](const std::string& begin) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].rfind(begin, 0) == 0) return i;
    }
    FAIL("no line begins with " << begin);
    return lines.size();
  };
  CHECK(line_of("global batch") < line_of("tokens/s"));
  CHECK(line_of("schedule.microbatches") < line_of("tokens/s"));
  CHECK(line_of("run.seed") < line_of("tokens/s"));
  CHECK(line_of("samples/s") < line_of("of step 3"));
  CHECK(line_of("of step 3") < line_of("the second run "));
  CHECK(line_of("the second run ") < line_of("on the critical path of a step"));
  CHECK_THAT(outcome.out, !Contains("run.name") && !Contains("run.dir"));
  CHECK_THAT(outcome.out, !Contains(" +0.000") && !Contains(" 0.000\n"));
}

}  // namespace troupe
