// What other programs do to the directory of a run that trains.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "cluster/socket.hpp"
#include "tests/faults/checks.hpp"

using namespace troupe::testing;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

std::string RunOf(const Job& job) {
  const auto runs = job.Runs();
  REQUIRE(runs.size() == 1);
  return runs.front();
}

/// The job ends within seconds of `moment` with exit code 1 and the cause as its last line.
void CheckDirectoryMissed(const Program& program, const std::string& run,
                          Clock::time_point moment) {
  const Ending ending = program.WaitForEnd(kPatience);
  INFO(program.Transcript());
  REQUIRE(ending.ended);
  CHECK(ending.exit_code == 1);
  CHECK(ending.last_line == "troupe: " + run +
                                ": the run directory was deleted or moved during the run; "
                                "nothing more of it can be saved");
  CHECK(ending.at - moment < 10s);
}

}  // namespace

TEST_CASE("a run directory that is deleted in mid-run is named within seconds") {
  const Job job;
  Program alone(job.Train({}, {}));
  REQUIRE(alone.WaitForLine("step 2/", kPatience));
  const std::string run = RunOf(job);
  const auto deleted = Clock::now();
  fs::remove_all(run);
  CheckDirectoryMissed(alone, run, deleted);
}

TEST_CASE("a run directory that is moved away from several processes is named within seconds") {
  const LocalBed bed({.nodes = 2});
  bed.AwaitStep(2);
  const std::string run = RunOf(bed.job());
  const auto moved = Clock::now();
  fs::rename(run, run + "-elsewhere");
  CheckDirectoryMissed(bed.program(), run, moved);
}

TEST_CASE("a trace that another program cuts short does not end the training") {
  const LocalBed bed({.nodes = 2, .settings = {"run.steps=8"}});
  bed.AwaitStep(2);
  const std::string trace = RunOf(bed.job()) + "/trace";
  for (const char* name : {"n0.trace", "n1.trace"}) fs::resize_file(trace + "/" + name, 0);
  const Ending ending = bed.program().WaitForEnd(kPatience);
  INFO(bed.program().Transcript());
  REQUIRE(ending.ended);
  CHECK(ending.exit_code == 0);
  CHECK(bed.job().Losses().size() == 8);
  CHECK(bed.program().WaitForLine("troupe: warning: the trace file of n1 was cut short", 0ms));
}

TEST_CASE("a run directory is for its owner only, and links in it lead nowhere") {
  const Job job;
  const std::string target = job.File("precious");
  std::ofstream(target) << "precious";
  const Program program(job.Train({"run.steps=12"}, {}));
  REQUIRE(program.WaitForLine("step 1/", kPatience));
  const std::string run = RunOf(job);
  CHECK((fs::status(run).permissions() & fs::perms::all) == fs::perms::owner_all);
  fs::create_symlink(target, run + "/weights.safetensors.tmp");
  const Ending ending = program.WaitForEnd(kPatience);
  INFO(program.Transcript());
  REQUIRE(ending.ended);
  CHECK(ending.exit_code == 0);
  CHECK(fs::file_size(target) == 8);
  CHECK(fs::is_regular_file(fs::symlink_status(run + "/weights.safetensors")));
}

TEST_CASE("a run that fails says how to resume it, or that there is nothing to resume from") {
  for (const bool saved : {true, false}) {
    const Job job;
    std::vector<std::string> settings = {"checkpoint.every=" + std::string(saved ? "2" : "0"),
                                         "checkpoint.async=false"};
    const Program program(
        job.Train(settings, {"--local", "2", "--plant-fault", "throw@device 1@RunForward@40"}));
    const Ending ending = program.WaitForEnd(kPatience);
    INFO(program.Transcript());
    REQUIRE(ending.ended);
    CHECK(ending.exit_code == 1);
    const std::string expected =
        saved ? "resume after step " : "nothing to resume from: no checkpoint is complete yet";
    const auto line = program.WaitForLine(expected, 0ms);
    REQUIRE(line);
    if (saved) CHECK_THAT(line->text, Catch::EndsWith("--resume " + RunOf(job)));
  }
}

TEST_CASE("nodes started by hand say how to resume when the first is killed") {
  if (NoBed()) return;
  for (const bool saved : {true, false}) {
    Bed bed({.nodes = 2,
             .settings = {"checkpoint.every=" + std::string(saved ? "1" : "0"),
                          "checkpoint.async=false"}});
    bed.AwaitStep(3);
    const std::string run = RunOf(bed.job());
    bed.Kill(0);
    CheckNamed(bed, 0, "n0: its process ended without saying goodbye", 2.0);
    const auto line = bed.WaitForLine(
        1, saved ? "resume after step " : "nothing to resume from: no checkpoint is complete yet",
        0ms);
    INFO(bed.Transcript());
    REQUIRE(line);
    if (saved) {
      CHECK_THAT(line->text, Catch::EndsWith("with: the same command and --resume " + run));
    }
  }
}

TEST_CASE("a node that outlives another than the first leaves the advice to the first") {
  if (NoBed()) return;
  Bed bed({.nodes = 4, .settings = {"checkpoint.every=1", "checkpoint.async=false"}});
  bed.AwaitStep(3);
  bed.Kill(2);
  CheckNamed(bed, 2, "n2: its process ended without saying goodbye", 2.0);
  INFO(bed.Transcript());
  CHECK(bed.WaitForLine(0, "resume after step ", 0ms));
  CHECK_FALSE(bed.WaitForLine(1, "resume after step ", 0ms));
}

TEST_CASE("a run whose first process is killed says how to resume it as well") {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    const LocalBed bed({.nodes = 2, .settings = {"checkpoint.every=1", "checkpoint.async=false"}});
    bed.AwaitStep(3);
    const std::string run = RunOf(bed.job());
    REQUIRE(kill(bed.Processes().front(), signal) == 0);
    const Ending ending = bed.program().WaitForEnd(kPatience);
    INFO(bed.program().Transcript());
    REQUIRE(ending.ended);
    CHECK(ending.exit_code == 3);
    CHECK_THAT(ending.last_line, Catch::StartsWith("troupe: lost n0"));
    const auto line = bed.program().WaitForLine("resume after step ", 0ms);
    REQUIRE(line);
    CHECK_THAT(line->text, Catch::EndsWith("with: the same command and --resume " + run));
  }
}

TEST_CASE("nodes that share no disk keep their parts of checkpoints, and go on from them") {
  const Job job;
  const std::string runs = job.File("runs");
  const std::string own = job.File("own disk of n1");
  fs::create_directories(runs);
  fs::create_directories(own);
  const std::vector<std::string> apart = {
      "unshare", "-m", "sh", "-c", "mount --bind '" + own + "' '" + runs + "' && exec \"$@\"",
      "sh"};
  try {
    Shell("unshare -m sh -c \"mount --bind '" + own + "' '" + runs + "'\"");
  } catch (const std::runtime_error& error) {
    WARN("skipped: " << error.what());
    return;
  }
  const auto train = [&](const std::vector<std::string>& settings,
                         const std::vector<std::string>& more) {
    const std::string join =
        troupe::ToString(troupe::Socket::Listen({"127.0.0.1", 0}).local_address());
    std::vector<std::string> words = apart;
    const auto second = job.Node(1, 2, join, settings, more);
    words.insert(words.end(), second.begin(), second.end());
    const Program one(job.Node(0, 2, join, settings, more));
    const Program other(words);
    const Ending ending = one.WaitForEnd(kPatience);
    const Ending other_ending = other.WaitForEnd(kPatience);
    INFO(one.Transcript() << other.Transcript());
    REQUIRE(ending.exit_code == 0);
    REQUIRE(other_ending.exit_code == 0);
    CHECK(one.WaitForLine("n1 does not see ", 0ms));
  };
  const std::string async = GENERATE("true", "false");
  const std::vector<std::string> usual = {"checkpoint.async=" + async, "checkpoint.every=2",
                                          "checkpoint.keep=1"};
  const auto with = [&](std::vector<std::string> settings) {
    settings.insert(settings.end(), usual.begin(), usual.end());
    return settings;
  };
  train(with({"run.steps=4"}), {});
  const std::string run = RunOf(job);
  const auto there = [](const std::string& checkpoints) {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(checkpoints)) {
      if (entry.is_regular_file()) names.insert(entry.path().filename().string().substr(0, 8));
    }
    return names;
  };
  const std::string step = "/checkpoints/step-00000004";
  const std::string its_run = own + "/" + fs::path(run).filename().string();
  CHECK(there(run + "/checkpoints") == std::set<std::string>{"disk", "language", "manifest"});
  CHECK(there(its_run + "/checkpoints") == std::set<std::string>{"disk", "manifest", "vision.s"});
  CHECK(Shell("cmp '" + run + step + "/manifest.json' '" + its_run + step + "/manifest.json'")
            .empty());
  CHECK_THAT(Shell(std::string(TROUPE_PROGRAM) + " ckpt verify '" + run + "'"),
             Catch::Contains("step-00000004: sound, 5 files, ") &&
                 Catch::Contains("; 1 of them on disks of other nodes: not verified here\n"));
  // Every rank reads what the other node has written.
  train(with({"run.steps=8", "modules.vision.ranks=0-3", "modules.language.ranks=4-7"}),
        {"--resume", run});
  const Job alone;
  const Program whole(alone.Train({"run.steps=8"}, {}));
  REQUIRE(whole.WaitForEnd(kPatience).exit_code == 0);
  const std::vector<double> losses = job.Losses();
  const std::vector<double> expected = alone.Losses();
  REQUIRE(losses.size() == 8);
  for (std::size_t i = 0; i < losses.size(); ++i)
    CHECK(losses[i] == Approx(expected[i]).epsilon(1e-5));
  // Without the other disk it cannot go on, and says what is missing.
  fs::remove_all(its_run);
  const Program lost(job.Train({"run.steps=9"}, {"--resume", run}));
  CHECK(lost.WaitForEnd(kPatience).exit_code == 1);
  CHECK(lost.WaitForLine("not there, expected ", 0ms));
}
