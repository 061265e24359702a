// What a user reads when the processes that --local has started end before they should.
#include <fstream>
#include <nlohmann/json.hpp>

#include <catch2/catch.hpp>

#include "app/progress.hpp"
#include "tests/cli/run_folder.hpp"

namespace troupe {
namespace {

using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

/// `troupe train configs/shapes.toml --local 2`, made small, with held-out rows.
Outcome TrainLocally(const RunFolder& folder, std::vector<std::string> settings,
                     const std::vector<std::string>& more, const ProcessOptions& options) {
  settings.push_back("data.held_out=" + (folder / "train.json"));
  auto arguments = folder.Arguments("train", "configs/shapes.toml", settings);
  arguments.insert(arguments.end(), {"--local", "2"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunTroupe(arguments, options);
}

/// Of all training steps in the run's metrics.jsonl.
double SecondsOf(const std::string& run) {
  std::ifstream metrics(run + "/metrics.jsonl");
  double seconds = 0;
  for (std::string line; std::getline(metrics, line);) {
    const auto value = nlohmann::json::parse(line);
    if (value.at("kind") == "step") seconds += value.at("seconds").get<double>();
  }
  return seconds;
}

}  // namespace

TEST_CASE("processes are not restarted when their output is closed", "[cli]") {
  const RunFolder folder;
  ProcessOptions options;
  options.stop_reading_at = "step 1/";
  const Outcome outcome = TrainLocally(folder, {"run.steps=100000", "checkpoint.every=50000"},
                                       {"--restarts", "3"}, options);
  INFO(outcome.err);
  CHECK(outcome.exit_code == 1);
  REQUIRE(!LinesOf(outcome.err).empty());
  CHECK(LinesOf(outcome.err).back() == "troupe: the output of n0 was closed by its reader");
  CHECK_THAT(outcome.err, !Contains("again"));
}

TEST_CASE("a run that goes on after a loss says where, and sums up all of it", "[cli]") {
  const RunFolder folder;
  ProcessOptions options;
  options.kill_child_at = "step 5/";
  const Outcome outcome =
      TrainLocally(folder, {"run.steps=30", "checkpoint.every=2"}, {"--restarts", "2"}, options);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("troupe: lost n1: killed by signal 9 (Killed); starting it "
                                   "again, 1 of 2 times\n"));
  CHECK_THAT(outcome.err, !Contains("checkpoint.every"));
  CHECK_THAT(outcome.out,
             Contains("\nresuming after step ") && Contains("\nheld out after 30 steps: "));
  const std::string run = folder.Runs().at(0);
  CHECK_THAT(outcome.out, Contains("\nrun directory " + run +
                                   ": resolved.toml, metrics.jsonl, trace/, trace-2/, "
                                   "weights.safetensors (96 tensors), checkpoints/\n"));
  CHECK_THAT(outcome.out,
             Contains("\ntrained 30 steps in " + FormatDuration(SecondsOf(run)) + ": "));
  CHECK(LinesOf(outcome.out).back() == "report        " + run + "/report.html");
}

TEST_CASE("a job of several processes that cannot start leaves no run directory", "[cli]") {
  const RunFolder folder;
  folder.WriteRows("[" + RowText("images/none.png") + "]");
  for (const char* restarts : {"0", "2"}) {
    const Outcome outcome = TrainLocally(folder, {}, {"--restarts", restarts}, {});
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Contains("images/none.png: no such file"));
    CHECK(folder.Runs().empty());
  }
}

TEST_CASE("a run without checkpoints warns that it begins again after a loss", "[cli]") {
  const RunFolder folder;
  ProcessOptions options;
  options.kill_child_at = "step 2/";
  const Outcome outcome = TrainLocally(folder, {"run.steps=30", "checkpoint.every_minutes=0"},
                                       {"--restarts", "1"}, options);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err,
             Contains("troupe: warning: --restarts: there will be no checkpoint to resume "
                      "from (checkpoint.every and every_minutes are 0)\n"));
  CHECK_THAT(outcome.err, Contains("; starting it again, 1 of 1 times\n"));
  const auto again = outcome.out.find(
      "\nbeginning again: there is no checkpoint (checkpoint.every and every_minutes are 0)\n");
  CHECK(again != std::string::npos);
  CHECK(again > outcome.out.find("\nstep 1/"));  // not when it begins
}

TEST_CASE("a second Ctrl-C says what was not saved", "[cli]") {
  for (const bool local : {false, true}) {
    const RunFolder folder;
    ProcessOptions options;
    options.interrupt_at = "step 3/";
    options.interrupt_again_at = "once more ends at once\n";
    // A step that does not end is the reason to press twice: the first of two activations of step 5.
    // That step begins as soon as step 3 is complete; step 4 may not be complete when it sticks.
    std::vector<std::string> arguments = folder.Arguments(
        "train", "configs/shapes.toml", {"run.steps=100000", "cluster.pass_timeout_s=600"});
    arguments.insert(arguments.end(),
                     {"--plant-fault", "sleep@stage language.s0 dp0@Activation@9"});
    if (local) arguments.insert(arguments.end(), {"--local", "2"});
    const Outcome outcome = RunTroupe(arguments, options);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 130);
    CHECK_THAT(outcome.err, EndsWith("finishing the step under way; once more ends at once\n"
                                     "ended at once: what was not saved yet is lost\n"));
    CHECK_FALSE(std::filesystem::exists(folder.Runs().at(0) + "/weights.safetensors"));
  }
}

}  // namespace troupe
