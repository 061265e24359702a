// `troupe top`: whether the job that it shows still runs.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "app/run_directory.hpp"
#include "tests/cli/process.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

/// Says in the trace that `pid` has noted it; docs/traces.md has the layout.
void ClaimBy(std::int64_t pid, const std::string& trace) {
  std::fstream file(trace, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(80);
  file.write(reinterpret_cast<const char*>(&pid), sizeof pid);
  REQUIRE(file.flush());
}

std::string TopOf(const std::string& run) {
  const Outcome outcome = RunTroupe({"top", run, "--once"});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  return outcome.out;
}

}  // namespace

TEST_CASE("top: a process that was killed and not reaped runs no more", "[cli]") {
  const ScratchFolder folder;
  const Outcome trained = RunTroupe({"train", "configs/synthetic_chain.toml", "--set",
                                     "run.dir=" + folder.path(), "--set", "run.steps=1"});
  REQUIRE(trained.exit_code == 0);
  const std::string run = FindRun(folder / "latest");
  const std::string trace = run + "/trace/n0.trace";
  ClaimBy(getpid(), trace);
  CHECK_THAT(TopOf(run), Catch::Contains("; running\n"));

  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  ClaimBy(child, trace);
  CHECK_THAT(TopOf(run), Catch::Contains("; not running on this machine"));
  waitpid(child, nullptr, 0);
}

TEST_CASE("top says which files it could not read", "[cli]") {
  const ScratchFolder folder;
  const Outcome trained = RunTroupe({"train", "configs/synthetic_chain.toml", "--set",
                                     "run.dir=" + folder.path(), "--set", "run.steps=1"});
  REQUIRE(trained.exit_code == 0);
  const std::string run = FindRun(folder / "latest");
  std::ofstream(run + "/trace/n9.trace") << "something else";
  CHECK_THAT(TopOf(run), Catch::Contains("\nnot read: " + run + "/trace/n9.trace: "));
}

}  // namespace troupe
