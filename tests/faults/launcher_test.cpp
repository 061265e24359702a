// What the launcher of several processes makes of children that die early or cannot be reaped.
#include <fstream>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <thread>

#include "tests/faults/checks.hpp"

using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

std::string ReadProc(pid_t pid, const std::string& file) {
  std::ifstream stream("/proc/" + std::to_string(pid) + "/" + file);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

/// The second process, once its libraries are there but have hardly started.
pid_t AwaitLibraries(const LocalBed& bed) {
  const auto deadline = Clock::now() + kPatience;
  while (Clock::now() < deadline) {
    const auto children = bed.Processes();
    if (children.size() == 2 && ReadProc(children[1], "maps").find("libucs") != std::string::npos) {
      return children[1];
    }
    std::this_thread::sleep_for(500us);
  }
  throw std::runtime_error("no second process:\n" + bed.program().Transcript());
}

/// Bit mask of the signals for which there is a handler.
unsigned long Caught(pid_t pid) {
  const std::string text = ReadProc(pid, "status");
  const auto at = text.find("SigCgt:");
  return at == std::string::npos ? 0 : std::stoul(text.substr(at + 7), nullptr, 16);
}

constexpr unsigned long BitOf(int signal) { return 1UL << (signal - 1); }

constexpr unsigned long kFatal =
    BitOf(SIGILL) | BitOf(SIGSEGV) | BitOf(SIGBUS) | BitOf(SIGFPE) | BitOf(SIGABRT);

}  // namespace

TEST_CASE("no library handles a fatal signal while a process starts") {
  const LocalBed bed({.nodes = 2, .settings = {"run.steps=1"}});
  const pid_t child = AwaitLibraries(bed);
  unsigned long caught = 0;
  // main() names the process.
  while (IsAlive(child) && ReadProc(child, "comm") != "troupe\n") caught |= Caught(child) & kFatal;
  CHECK(caught == 0);
  CHECK(bed.program().WaitForEnd(kPatience).exit_code == 0);
}

TEST_CASE("a process that crashes while it starts is named within ten seconds") {
  struct Crash {
    int signal;
    std::chrono::milliseconds after;
    const char* cause;
  };
  for (const Crash& crash : {Crash{SIGSEGV, 0ms, "signal 11 (Segmentation fault)"},
                             Crash{SIGABRT, 60ms, "signal 6 (Aborted)"},
                             Crash{SIGSEGV, 150ms, "signal 11 (Segmentation fault)"}}) {
    const LocalBed bed({.nodes = 2});
    const pid_t child = AwaitLibraries(bed);
    std::this_thread::sleep_for(crash.after);
    const auto crashed = Clock::now();
    kill(child, crash.signal);
    const Ending ending = bed.program().WaitForEnd(kPatience);
    INFO(bed.program().Transcript());
    REQUIRE(ending.ended);
    CHECK(ending.exit_code == kExitLost);
    CHECK(ending.last_line == std::string("troupe: lost n1: killed by ") + crash.cause);
    CHECK(ending.at - crashed < 10s);
  }
}

TEST_CASE("a process that is asked to end before it listens ends the job in order") {
  for (const auto after : {0ms, 60ms}) {
    const LocalBed bed({.nodes = 2});
    const pid_t child = AwaitLibraries(bed);
    std::this_thread::sleep_for(after);
    kill(child, SIGTERM);
    const Ending ending = bed.program().WaitForEnd(kPatience);
    INFO(bed.program().Transcript());
    REQUIRE(ending.ended);
    CHECK(ending.exit_code == 128 + SIGTERM);
    CHECK(ending.last_line == "interrupted before anything had begun");
  }
}

TEST_CASE("a process that is traced and cannot be reaped is named, and does not hold up the end") {
  const LocalBed bed({.nodes = 2});
  bed.AwaitStep(2);
  const pid_t child = bed.Processes().at(1);
  if (ptrace(PTRACE_SEIZE, child, nullptr, nullptr) != 0) {
    WARN("skipped: this machine allows no tracing");
    return;
  }
  const auto killed = Clock::now();
  kill(child, SIGKILL);
  const Ending ending = bed.program().WaitForEnd(30s);
  INFO(bed.program().Transcript());
  REQUIRE(ending.ended);
  CHECK(ending.exit_code == kExitLost);
  CHECK(ending.last_line == "troupe: lost n1: killed by signal 9 (Killed)");
  CHECK(ending.at - killed < 15s);
  const auto warning = bed.program().WaitForLine(
      "troupe: warning: n1 (process " + std::to_string(child) + ") cannot be reaped", 0ms);
  REQUIRE(warning);
  CHECK_THAT(warning->text, Catch::Contains("traces it"));
  waitpid(child, nullptr, __WALL);
}

TEST_CASE("a process that SIGKILL does not end is left behind, and the cause is printed") {
  const LocalBed bed({.nodes = 2});
  bed.AwaitStep(2);
  const auto children = bed.Processes();
  // Stopped on its way out by its tracer: to the launcher, one that no signal ends.
  if (ptrace(PTRACE_SEIZE, children.at(1), nullptr, static_cast<long>(PTRACE_O_TRACEEXIT)) != 0) {
    WARN("skipped: this machine allows no tracing");
    return;
  }
  const auto killed = Clock::now();
  kill(children.at(0), SIGKILL);
  const Ending ending = bed.program().WaitForEnd(40s);
  INFO(bed.program().Transcript());
  ptrace(PTRACE_DETACH, children.at(1), nullptr, nullptr);
  REQUIRE(ending.ended);
  CHECK(ending.exit_code == kExitLost);
  CHECK(ending.last_line == "troupe: lost n0: killed by signal 9 (Killed)");
  CHECK(ending.at - killed < 20s);
  CHECK(bed.program().WaitForLine(
      "troupe: warning: n1 (process " + std::to_string(children.at(1)) + ") does not end", 0ms));
}
