// Checkpoints by time: one is due after so many minutes, every process writes its part, and a run
// without any warns at its start.
#include <filesystem>

#include <catch2/catch.hpp>

#include "actors/director_actor.hpp"
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

TEST_CASE("a checkpoint is due by time when so long has passed since the newest one", "[cli]") {
  Checkpoints checkpoints;
  checkpoints.every_ns = 600;
  CHECK_FALSE(IsDueByTime(checkpoints, 0, 1000));  // nowhere to write it
  checkpoints.folder = [](std::int64_t) { return ""; };
  CHECK_FALSE(IsDueByTime(checkpoints, 500, 1099));
  CHECK(IsDueByTime(checkpoints, 500, 1100));
  checkpoints.every_ns = 0;
  CHECK_FALSE(IsDueByTime(checkpoints, 0, 1'000'000));
}

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
  CHECK(ReadManifest(*newest)->step >= 6);
  CHECK(std::distance(std::filesystem::directory_iterator(run + "/checkpoints"), {}) == 2);
  const Outcome resumed =
      RunTroupe({"train", "--resume", run, "--set", "run.steps=10", "--local", local});
  INFO(resumed.out << resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK_THAT(resumed.out, Catch::Contains("step 10/10"));
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
