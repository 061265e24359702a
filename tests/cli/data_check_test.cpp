// Bad rows and images: found all at once before a run, or skipped by it.
#include <fstream>
#include <nlohmann/json.hpp>

#include <catch2/catch.hpp>

#include "tests/cli/run_folder.hpp"

namespace troupe {
namespace {

using Catch::Contains;

/// Five rows: a good image, a missing one, one that is cut short, a gif, and a row that is wrong.
void WriteFiveRows(const RunFolder& folder) {
  const std::string whole = BytesOf("data/shapes/images/train_0000.png");
  folder.WriteImage("cut.png", whole.substr(0, whole.size() / 2));
  folder.WriteImage("a.gif", "GIF89a");
  folder.WriteRows("[" + RowText("images/good.png") + "," + RowText("images/none.png") + "," +
                   RowText("images/cut.png") + "," + RowText("images/a.gif") + "," +
                   RowText("images/good.png", "no placeholder") + "]");
}

/// The last object of the only run's metrics.
nlohmann::json LastMetrics(const RunFolder& folder) {
  const auto lines = LinesOf(BytesOf(folder.Runs().at(0) + "/metrics.jsonl"));
  return nlohmann::json::parse(lines.back());
}

TEST_CASE("data check prints every fault of a list, one a line, and a summary", "[cli]") {
  const RunFolder folder;
  WriteFiveRows(folder);
  const std::string list = folder / "train.json";
  const Outcome whole = RunTroupe({"data", "check", list});
  INFO(whole.out << whole.err);
  CHECK(whole.exit_code == 1);
  const auto lines = LinesOf(whole.out);
  REQUIRE(lines.size() == 8);
  for (int row = 1; row < 5; ++row) {
    CHECK_THAT(lines[static_cast<std::size_t>(row) - 1],
               Catch::StartsWith(list + ": row " + std::to_string(row) + " (id \"a\"): "));
  }
  CHECK_THAT(lines[1], Contains("images/cut.png: not a usable png: "));
  CHECK(lines[5] == "  rows    5, 0 without an image, 4 bad");
  CHECK(lines[6] == "  images  4, 1 png of 32 x 32");
  CHECK_THAT(lines[7], Catch::StartsWith("4 faults: "));

  const Outcome quick = RunTroupe({"data", "check", list, "--quick"});
  CHECK(quick.exit_code == 1);
  CHECK_THAT(quick.out, !Contains("cut.png") && Contains("none.png") && Contains("3 faults: "));
}

TEST_CASE("data check of a configuration checks both lists against it", "[cli]") {
  const RunFolder folder;
  const Outcome outcome = RunTroupe(
      {"data", "check", "configs/shapes.toml", "--set", "data.train=" + (folder / "train.json")});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  const auto lines = LinesOf(outcome.out);
  REQUIRE(lines.size() == 10);
  CHECK_THAT(lines[3], Contains("tokens  at most ") && Contains("the context is 96; 0 rows"));
  CHECK(lines[4] == "  epochs  6400.0: 200 steps of 32 samples");
  CHECK(lines[5] == "data/shapes/held_out.json");
  CHECK(lines[9] == "no faults");
  WriteFiveRows(folder);
  const Outcome bad = RunTroupe(
      {"data", "check", "configs/shapes.toml", "--set", "data.train=" + (folder / "train.json")});
  CHECK_THAT(bad.out, Contains("  epochs  6400.0: 200 steps of 32 samples"));  // of the good row
  CHECK(RunTroupe({"data", "check", "none.json"}).exit_code == 1);
  CHECK(RunTroupe({"data", "check", "none.toml"}).exit_code == 2);
}

TEST_CASE("train and doctor name all bad rows at once", "[cli]") {
  const RunFolder folder;
  WriteFiveRows(folder);
  const Outcome train = folder.Train();
  INFO(train.out << train.err);
  CHECK(train.exit_code == 2);
  CHECK(LinesOf(train.err).size() == 3);
  CHECK(folder.Runs().empty());
  const Outcome doctor = RunTroupe(folder.Arguments("doctor", "configs/shapes.toml"));
  CHECK(doctor.exit_code == 4);
  for (const std::string& line : LinesOf(train.err)) CHECK_THAT(doctor.out, Contains(line));
}

TEST_CASE("on_error = skip trains without bad rows and images, and counts them", "[cli]") {
  const RunFolder folder;
  WriteFiveRows(folder);
  const Outcome outcome = folder.Train({"data.on_error=skip"});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("\n2 of 5 rows, 12.0 epochs\n"));  // 3 steps of 8 samples
  CHECK_THAT(outcome.err, Contains("3 rows are skipped") && Contains("row 1 (id \"a\"): "));
  const std::string cut =
      "row 2 (id \"a\"): " + (folder / "images/cut.png") +
      ": not a usable png: the file is cut short; replaced by the mean colour\n";
  CHECK_THAT(outcome.err, Contains(cut));
  CHECK(outcome.err.find(cut) == outcome.err.rfind(cut));  // once, in three steps
  const auto metrics = LastMetrics(folder);
  CHECK(metrics["skipped_samples"].get<int>() > 0);
  CHECK(metrics["replaced_items"] == 1);

  // In two processes, and in another layout, the same rows and the same loss.
  const RunFolder other;
  WriteFiveRows(other);
  auto arguments = other.Arguments("train", "configs/shapes_2node.toml", {"data.on_error=skip"});
  arguments.insert(arguments.end(), {"--local", "2"});
  const Outcome two = RunTroupe(arguments);
  INFO(two.out << two.err);
  REQUIRE(two.exit_code == 0);
  CHECK_THAT(two.err, Contains("replaced by the mean colour"));
  CHECK(LastMetrics(other)["skipped_samples"] == metrics["skipped_samples"]);
  CHECK(LastMetrics(other)["replaced_items"] == metrics["replaced_items"]);
  CHECK(LastMetrics(other)["loss"].get<double>() ==
        Approx(metrics["loss"].get<double>()).epsilon(1e-4));
}

TEST_CASE("more rows and images than data.skip_limit end the run", "[cli]") {
  const RunFolder folder;
  WriteFiveRows(folder);
  const Outcome outcome = folder.Train({"data.on_error=skip", "data.skip_limit=3"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK_THAT(
      outcome.err,
      Contains("; replaced by the mean colour\n") &&
          Contains(
              "data.skip_limit: expected at most 3 rows and files that cannot be used, got more"));
}

TEST_CASE("data.skip_limit counts the images of earlier starts", "[cli]") {
  const RunFolder folder;
  WriteFiveRows(folder);
  const Outcome first = folder.Train(
      {"data.on_error=skip", "data.skip_limit=4", "run.steps=2", "checkpoint.every=1"});
  INFO(first.out << first.err);
  REQUIRE(first.exit_code == 0);
  const std::string whole = BytesOf("data/shapes/images/train_0000.png");
  std::ofstream(folder / "images/cut.png", std::ios::binary) << whole;
  const auto resume = [&](const std::string& steps) {
    return RunTroupe({"train", "--resume", folder.Runs().at(0), "--set", "run.steps=" + steps});
  };
  CHECK(resume("3").exit_code == 0);
  CHECK(LastMetrics(folder)["replaced_items"] == 0);
  std::ofstream(folder / "images/good.png", std::ios::binary) << whole.substr(0, whole.size() / 2);
  const Outcome last = resume("4");
  CHECK(last.exit_code == 1);
  CHECK_THAT(
      last.err,
      Contains("data.skip_limit: expected at most 4 rows and files that cannot be used, got more"));
}

TEST_CASE("gradients are right where an image is replaced", "[cli]") {
  const RunFolder folder;
  WriteFiveRows(folder);
  for (const char* config : {"configs/shapes.toml", "configs/shapes_colocated.toml"}) {
    const Outcome outcome = RunTroupe(folder.Arguments("verify", config, {"data.on_error=skip"}));
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK_THAT(outcome.out, Contains("equals the unsharded reference"));
  }
}

}  // namespace
}  // namespace troupe
