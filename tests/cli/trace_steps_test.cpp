// Which step a round was is in the trace itself, however the run began and whatever it has lost.
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include <catch2/catch.hpp>

#include "tests/cli/run_folder.hpp"

namespace troupe {
namespace {

/// "1:1 2:2": step and round of each, by what `troupe trace` says of `run`.
std::string StepsOf(const std::string& run) {
  const Outcome outcome =
      RunTroupe({"trace", "sql", run, "select step || ':' || round s from steps order by step",
                 "--format", "csv"});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  std::istringstream lines(outcome.out);
  std::string text;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) text += (text.empty() ? "" : " ") + line;
  return text;
}

/// The same by the plan: an evaluation before the first step and after every `every`-th; rounds
/// count from 0 at the first one that comes after step `done`.
std::string PlannedSteps(int first, int last, int done, int every) {
  std::string text;
  int round = done % every == 0 ? 1 : 0;
  for (int step = done + 1; step <= last; ++step) {
    if (step >= first) {
      text += (text.empty() ? "" : " ") + std::to_string(step) + ':' + std::to_string(round);
    }
    round += step % every == 0 ? 2 : 1;
  }
  return text;
}

/// The steps that metrics.jsonl has, in its order.
std::vector<int> LoggedSteps(const std::string& run) {
  std::ifstream file(run + "/metrics.jsonl");
  std::vector<int> steps;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json["kind"] == "step") steps.push_back(json["step"]);
  }
  return steps;
}

std::vector<std::string> Settings(const RunFolder& folder, const std::string& steps) {
  return {"run.steps=" + steps, "run.evaluate_every=2", "data.held_out=" + (folder / "train.json")};
}

}  // namespace

TEST_CASE("the trace of a resumed run counts its steps on, evaluations between them", "[cli]") {
  const RunFolder folder;
  const auto arguments = folder.Arguments("train", "configs/shapes.toml", Settings(folder, "30"));
  ProcessOptions interrupted;
  interrupted.interrupt_at = "step 3/30";
  REQUIRE(RunTroupe(arguments, interrupted).exit_code == 130);
  const std::string run = folder.Runs().at(0);
  const int done = LoggedSteps(run).back();
  REQUIRE(done >= 3);
  REQUIRE(done < 30);
  CHECK(StepsOf(run) == PlannedSteps(1, done, 0, 2));

  auto words = arguments;
  words.insert(words.end(), {"--resume", run});
  const Outcome resumed = RunTroupe(words);
  INFO(resumed.out << resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK(LoggedSteps(run).back() == 30);
  CHECK(StepsOf(run) == PlannedSteps(done + 1, 30, done, 2));
}

TEST_CASE("a trace that has lost its beginning counts as the run did", "[cli]") {
  const RunFolder folder;
  auto settings = Settings(folder, "24");
  settings.insert(settings.end(), {"trace.buffer_mib=1", "schedule.microbatches=8"});
  const Outcome trained = folder.Train(settings);
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const std::string run = folder.Runs().at(0);
  const std::string steps = StepsOf(run);
  const int first = std::stoi(steps);
  CHECK(first > 3);
  CHECK(first < 22);
  CHECK(steps == PlannedSteps(first, 24, 0, 2));
}

}  // namespace troupe
