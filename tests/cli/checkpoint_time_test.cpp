// Checkpoints by time: one is due after so many minutes, every process writes its part, and a run
// without any warns at its start.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include <catch2/catch.hpp>

#include "app/run_directory.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "tests/cli/process.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

std::vector<std::string> Train(const ScratchFolder& folder, const std::string& minutes,
                               const std::string& local = "1") {
  return {"train",   "configs/shapes.toml",
          "--set",   "run.steps=8",
          "--set",   "run.evaluate_every=0",
          "--set",   "data.held_out=",
          "--set",   "run.dir=" + (folder / "runs"),
          "--set",   "checkpoint.every_minutes=" + minutes,
          "--local", local};
}

}  // namespace

TEST_CASE("checkpoints are written by time in every process, and a run resumes from them",
          "[cli]") {
  const std::string local = GENERATE("1", "2");
  const ScratchFolder folder;
  const Outcome outcome = RunTroupe(Train(folder, "0.00001", local));
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, !Catch::Contains("no checkpoints"));
  const std::string run = FindRun(folder / "runs/latest");
  // At least every second step: one may have begun when the time was up.
  const auto newest = NewestCheckpoint(run);
  REQUIRE(newest);
  CHECK(RequireManifest(*newest).run.step >= 4);
  CHECK(std::distance(std::filesystem::directory_iterator(run + "/checkpoints"), {}) == 2);
  const Outcome resumed =
      RunTroupe({"train", "--resume", run, "--set", "run.steps=10", "--local", local});
  INFO(resumed.out << resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK_THAT(resumed.out, Catch::Contains("step 10/10"));
}

TEST_CASE("SIGUSR2 to a job writes a checkpoint after the step under way", "[cli]") {
  const std::string local = GENERATE("1", "2");
  const ScratchFolder folder;
  ProcessOptions options;
  options.call_at = "step 2/";
  std::string newest;
  options.call = [&](int process) {
    kill(process, SIGUSR2);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const std::string run = FindRun(folder / "runs/latest");
    while (newest.empty() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      newest = NewestCheckpoint(run).value_or("");
    }
    kill(process, SIGINT);
  };
  auto words = Train(folder, "0", local);
  words.insert(words.end(), {"--set", "run.steps=5000", "--set", "checkpoint.keep=9"});
  const Outcome outcome = RunTroupe(words, options);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 130);
  CHECK_THAT(outcome.err, Catch::Contains("writing a checkpoint after the step under way"));
  REQUIRE_FALSE(newest.empty());
  CHECK(RequireManifest(newest).run.step >= 2);
  // One that was asked for, and one at the interruption.
  CHECK(AllCheckpoints(FindRun(folder / "runs/latest")).size() == 2);
}

TEST_CASE("a job goes on with other processes, in a new run too, and restarts there", "[cli]") {
  const ScratchFolder folder;
  auto words = Train(folder, "0", "2");
  words.insert(words.end(), {"--set", "checkpoint.every=4"});
  REQUIRE(RunTroupe(words).exit_code == 0);
  const std::string first = FindRun(folder / "runs/latest");
  words = Train(folder, "0", "4");
  words.insert(words.end(),
               {"--set", "run.dir=" + (folder / "other"), "--set",
                "modules.language.layout={dp=2, tp=2}", "--set", "schedule.micro_batch_size=4",
                "--from", first, "--from-step", "4", "--restarts", "1"});
  const Outcome outcome = RunTroupe(words);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("resuming after step 4, from " + first) &&
                              Catch::Contains("step 8/8"));
  CHECK_THAT(outcome.out, !Catch::Contains("step 4/8"));
  words[words.size() - 3] = "5";
  CHECK_THAT(RunTroupe(words).err, Catch::Contains("has no complete checkpoint of it, but of "
                                                   "steps 8, 4"));
}

TEST_CASE("a run that keeps no checkpoints says so when it starts", "[cli]") {
  const ScratchFolder folder;
  const Outcome none = RunTroupe(Train(folder, "0"));
  CHECK_THAT(none.out, Catch::Contains("\nno checkpoints: a crash loses the run (checkpoint.every "
                                       "and every_minutes are 0)\n"));
  CHECK_FALSE(std::filesystem::exists(folder / "runs/latest/checkpoints"));
  const Outcome later = RunTroupe(Train(folder, "10"));
  CHECK_THAT(later.out, !Catch::Contains("no checkpoints"));
  CHECK_FALSE(std::filesystem::exists(folder / "runs/latest/checkpoints"));
}

}  // namespace troupe
