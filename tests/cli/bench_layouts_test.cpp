// `troupe bench layouts`: what it runs, by which numbers it compares, and what it refuses.
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include <catch2/catch.hpp>

#include "cli/layouts/layout_table.hpp"
#include "cli/schedule/bench_table.hpp"
#include "configs/loader.hpp"
#include "tests/cli/process.hpp"
#include "tests/cli/run_folder.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

using Catch::Contains;

/// shapes.toml on two ranks, one for each module.
const std::vector<std::string> kOnTwo = {"cluster.ranks=2", "modules.language.ranks=0",
                                         "modules.language.layout={}", "modules.vision.ranks=1",
                                         "modules.vision.layout={}"};

std::vector<std::string> BenchLayouts(const std::vector<std::string>& settings,
                                      const std::vector<std::string>& more) {
  std::vector<std::string> all = {"bench", "layouts", kShapes};
  for (const std::string& setting : settings) all.insert(all.end(), {"--set", setting});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

nlohmann::json JsonIn(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

LayoutEntry LayoutRun(std::size_t number, double predicted_ms, const std::vector<double>& step_ms) {
  LayoutEntry entry{number, {}};
  entry.plan.config = LoadConfig(kShapes).config;
  entry.plan.cost.step_s = predicted_ms * 1e-3;
  entry.step_ms = step_ms;
  return entry;
}

/// Steps of which no two lists overlap if their middles differ by one.
std::vector<double> Near(double ms) {
  return {ms, ms + 0.1, ms - 0.1, ms + 0.2, ms - 0.2, ms + 0.3, ms - 0.3};
}

}  // namespace

TEST_CASE("plans and the configuration as it stands train on one global batch", "[cli]") {
  const ScratchFolder folder;
  const std::string json = folder / "layouts.json";
  const std::string out = folder / "plans";
  const Outcome outcome =
      RunTroupe(BenchLayouts(kOnTwo, {"--device", "a100-80g", "--top", "2", "--measure", "--reps",
                                      "2", "--json", json, "--out", out}));
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.err,
             Contains("once for memory") && Contains(" s to go") && Contains("turn 2 of 2"));
  CHECK_THAT(outcome.out, Contains("measured, median of 2") && Contains(" was fastest: "));
  const nlohmann::json file = JsonIn(json);
  CHECK(file["device"] == "a100-80g");
  CHECK(file["global_batch"] == 32);
  CHECK(file["memory_of"] == "all ranks");
  CHECK(file["in_predicted_order"].is_boolean());
  REQUIRE(file["rows"].size() >= 2);
  CHECK(file["rows"].back()["plan"] == 0);
  CHECK(file["rows"].back()["settings"].empty());
  for (const nlohmann::json& row : file["rows"]) {
    INFO(row.dump());
    CHECK(row["global_batch"] == 32);
    CHECK(row["predicted_step_ms"].get<double>() > 0.0);
    REQUIRE(row["measured_step_ms"].size() == 2);
    for (const nlohmann::json& ms : row["measured_step_ms"]) CHECK(ms.get<double>() > 0.0);
    CHECK(row["measured_bytes"].is_number_integer());
    CHECK_FALSE(row.contains("failure"));
    if (row["plan"] == 0) continue;
    // The settings make the plan out of the file, and --out wrote the same.
    const std::vector<std::string> settings = row["settings"];
    const Config planned = LoadConfig(kShapes, settings).config;
    CHECK(planned.cluster.ranks == row["ranks"]);
    CHECK(planned.global_batch() == 32);
    const std::string written = out + "/plan" + std::to_string(row["plan"].get<int>()) + ".toml";
    CHECK(LoadConfig(written).config == planned);
  }
}

#ifndef TROUPE_SANITIZED  // whose heap says nothing
TEST_CASE("what ranks hold is measured, next to the estimate of it", "[cli]") {
  const ScratchFolder folder;
  const std::string json = folder / "layouts.json";
  auto settings = kOnTwo;
  for (const char* larger : {"modules.language.hidden=384", "modules.language.mlp_hidden=1536",
                             "modules.language.heads=8", "schedule.micro_batch_size=2"}) {
    settings.emplace_back(larger);
  }
  const Outcome outcome =
      RunTroupe(BenchLayouts(settings, {"--device", "a100-80g", "--top", "1", "--measure", "--reps",
                                        "1", "--json", json}));
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const nlohmann::json file = JsonIn(json);
  CHECK(file["rows"].size() == 2);
  for (const nlohmann::json& row : file["rows"]) {
    INFO(row.dump());
    const auto measured = row["measured_bytes"].get<double>();
    const auto estimated = row["estimated_bytes"].get<double>();
    CHECK(estimated > 100e6);
    CHECK(measured > 0.7 * estimated);
    CHECK(measured < 1.05 * estimated);
  }
}
#endif

TEST_CASE("without --measure nothing runs, and now needs as many ranks", "[cli]") {
  const Outcome outcome =
      RunTroupe(BenchLayouts({}, {"--ranks", "2", "--device", "a100-80g", "--top", "1"}));
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("\n1  ") && !Contains("\nnow") && !Contains("measured, median"));
  CHECK_THAT(outcome.out, Contains("global batch 32, samples of "));  // those of the data
  CHECK_THAT(outcome.err, !Contains("running"));
  const Outcome as_many =
      RunTroupe(BenchLayouts({}, {"--ranks", "8", "--device", "a100-80g", "--top", "1"}));
  CHECK_THAT(as_many.out, Contains("\nnow"));
}

TEST_CASE("without --device bench layouts measures the devices here", "[cli]") {
  const Outcome outcome =
      RunTroupe(BenchLayouts({}, {"--ranks", "2", "--profile-seconds", "5", "--top", "1"}));
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("no --device: measures what passes take here") &&
                              Contains("probes, about 5 s"));
  CHECK_THAT(outcome.out, Contains("2 devices of this machine: measured on "));
}

TEST_CASE("layouts that fail are named, and the exit code is 1", "[cli]") {
  const RunFolder folder;
  const std::string whole = BytesOf("data/shapes/images/train_0000.png");
  folder.WriteImage("cut.png", whole.substr(0, whole.size() / 2));
  const std::string json = folder / "layouts.json";
  const Outcome outcome =
      RunTroupe(BenchLayouts({"data.train=" + (folder / "train.json")},
                             {"--ranks", "2", "--device", "a100-80g", "--top", "1", "--measure",
                              "--reps", "1", "--json", json}));
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK_THAT(outcome.out,
             Contains("plan 1 failed: ") && Contains("cut.png") && !Contains("was fastest"));
  const nlohmann::json file = JsonIn(json);
  CHECK(file["rows"][0]["failure"].is_string());
}

TEST_CASE("bench layouts says what is wrong before anything runs", "[cli]") {
  const auto refused = [](const std::vector<std::string>& arguments, int exit_code,
                          const std::string& text) {
    std::vector<std::string> all = {"bench", "layouts"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Outcome outcome = RunTroupe(all);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == exit_code);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, Contains(text));
  };
  refused({"configs/synthetic_chain.toml", "--device", "a100-80g"}, 2, "states its times");
  refused({"configs/synthetic_chain.toml"}, 2, "states its times");
  refused({kShapes, "--device", "h100"}, 2, "--device: expected a100-80g, ");
  refused({kShapes, "--device", "h100-80g", "--reps", "3"}, 2, "--measure");
  refused({kShapes, "--device", "h100-80g", "--profile-seconds", "9"}, 2, "--device");
  refused({kShapes, "--set", "data.train=none.json"}, 2, "none.json");
  refused({kShapes, "--device", "h100-80g", "--json", "no/such/file.json"}, 1, "no/such/file.json");
  refused({kShapes, "--device", "l40s-48g", "--ranks", "1", "--set",
           "modules.language.hidden=32768", "--set", "modules.language.heads=128", "--set",
           "modules.language.kv_heads=128", "--set", "modules.language.mlp_hidden=131072"},
          1, "no layout of language fits on 1 device of 48 GB");
}

TEST_CASE("the verdict on layouts names the fastest, and whether the prediction had the order",
          "[cli]") {
  CHECK(VerdictOf(
            {LayoutRun(1, 5, Near(10)), LayoutRun(2, 6, Near(12)), LayoutRun(0, 9, Near(20))}) ==
        "plan 1 was fastest: 50.0% less time than now; the prediction had the same order\n");
  CHECK(VerdictOf(
            {LayoutRun(1, 5, Near(12)), LayoutRun(2, 6, Near(10)), LayoutRun(0, 9, Near(20))}) ==
        "plan 2 was fastest: 50.0% less time than now; the prediction had another order: 1, 2, "
        "now\n");
  CHECK(VerdictOf(
            {LayoutRun(1, 5, Near(10.1)), LayoutRun(2, 6, Near(10)), LayoutRun(0, 9, Near(20))}) ==
        "plan 2 was fastest: 50.0% less time than now; the prediction had the same order but for "
        "differences within the noise\n");
  // Without the configuration as it stands, or where it was the fastest, the next one is compared.
  CHECK(VerdictOf({LayoutRun(1, 5, Near(8)), LayoutRun(2, 6, Near(10))}) ==
        "plan 1 was fastest: 20.0% less time than plan 2; the prediction had the same order\n");
  CHECK(VerdictOf({LayoutRun(1, 5, Near(10)), LayoutRun(0, 4, Near(8))}) ==
        "now was fastest: 20.0% less time than plan 1; the prediction had the same order\n");
  CHECK(VerdictOf({LayoutRun(1, 5, Near(10)), LayoutRun(0, 6, Near(10.1))}) ==
        "plan 1 was fastest: no difference from now beyond the noise; the prediction had the same "
        "order\n");
  CHECK(VerdictOf({LayoutRun(1, 5, {8}), LayoutRun(0, 6, {10})}) ==
        "plan 1 was fastest: 20.0% less time than now (which may be noise); the prediction had the "
        "same order\n");
  CHECK(VerdictOf({LayoutRun(1, 5, {8})}).empty());
}

TEST_CASE("layouts that failed have no numbers and no place in the order", "[cli]") {
  std::vector<LayoutEntry> entries = {LayoutRun(1, 5, Near(30)), LayoutRun(2, 6, Near(10)),
                                      LayoutRun(0, 9, Near(20))};
  CHECK_FALSE(InPredictedOrder(entries));
  CHECK(FailuresText(entries).empty());
  entries[0].failure = "rank 3 is out of memory";
  CHECK(InPredictedOrder(entries));
  CHECK(VerdictOf(entries) ==
        "plan 2 was fastest: 50.0% less time than now; the prediction had the same order\n");
  CHECK(FailuresText(entries) == "plan 1 failed: rank 3 is out of memory\n");
  const auto lines = LinesOf(MeasuredTableOf(entries));
  REQUIRE(lines.size() == 4);
  CHECK_THAT(lines[1], !Contains("30.") && Contains("5.000"));
  CHECK_THAT(lines[2], Contains("10.00 [9.70, 10.30]") && Contains("3200"));
}

}  // namespace troupe
