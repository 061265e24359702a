// Jobs whose launcher is process 1, or has an init above it.
#include <filesystem>
#include <fstream>
#include <sys/prctl.h>
#include <thread>

#include "tests/faults/checks.hpp"

using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

/// In a process namespace of its own, `words` being process 1 there.
std::vector<std::string> Contained(const std::vector<std::string>& words) {
  std::vector<std::string> all = {"unshare", "-pf", "--mount-proc", "--kill-child"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

/// Where the kernel forbids it, a test says so and passes.
bool NoContainers() {
  try {
    Shell("unshare -pf --mount-proc true");
    return false;
  } catch (const std::runtime_error& error) {
    WARN("skipped: " << error.what());
    return true;
  }
}

bool HasTini() { return Shell("command -v tini || echo none").find("none") == std::string::npos; }

/// Process 1 of the namespace that `program` has made.
pid_t FirstProcess(const Program& program) {
  const auto children = ChildrenOf(program.pid());
  return children.empty() ? -1 : children.front();
}

/// `line` is part of what is printed.
void CheckTrains(const std::vector<std::string>& words, const std::string& line = "") {
  const Program program(Contained(words));
  const Ending ending = program.WaitForEnd(kPatience);
  INFO(program.Transcript());
  REQUIRE(ending.ended);
  CHECK(ending.exit_code == 0);
  CHECK_THAT(program.Transcript(), Catch::Contains(line));
}

/// Everything that the launcher of `bed` has started ends soon after it.
void CheckChildrenFollow(const std::vector<pid_t>& children) {
  const auto deadline = Clock::now() + 10s;
  for (const pid_t child : children) {
    while (IsAlive(child) && Clock::now() < deadline) std::this_thread::sleep_for(20ms);
    CHECK_FALSE(IsAlive(child));
    kill(child, SIGKILL);
  }
}

std::vector<pid_t> AwaitChildren(const LocalBed& bed, std::size_t count) {
  const auto deadline = Clock::now() + kPatience;
  while (bed.Processes().size() < count && Clock::now() < deadline) {
    std::this_thread::sleep_for(1ms);
  }
  return bed.Processes();
}

}  // namespace

TEST_CASE("several processes train where the launcher is process 1, and where an init is") {
  if (NoContainers()) return;
  const Job job;
  CheckTrains(job.Train({"run.steps=2"}, {"--local", "2"}));
  CheckTrains(
      job.Train({"run.steps=2", "checkpoint.every=1"}, {"--local", "2", "--restarts", "1"}));
  std::vector<std::string> under_init = {"tini", "--"};
  // A shell that waits reaps like an init.
  if (!HasTini()) under_init = {"sh", "-c", "\"$@\" & wait $!", "init"};
  const auto train = job.Train({"run.steps=2"}, {"--local", "2"});
  under_init.insert(under_init.end(), train.begin(), train.end());
  CheckTrains(under_init);
}

TEST_CASE("a node with a process for each rank trains where troupe is process 1") {
  if (NoContainers()) return;
  const Job job;
  // Two ranks are enough: the processes of the node are n0.d0 and n0.d1.
  std::vector<std::string> settings = {"run.steps=2",
                                       "cluster.processes=device",
                                       "cluster.ranks=2",
                                       "modules.vision.ranks=[1]",
                                       "modules.vision.layout.dp=1",
                                       "modules.language.ranks=[0]",
                                       "modules.language.layout.tp=1",
                                       "modules.language.layout.pp=1"};
  CheckTrains(job.Node(0, 1, FreeAddress(), settings), "n0.d1");
  CHECK(job.Losses().size() == 2);
  settings.insert(settings.end(), {"run.name=again", "checkpoint.every=1"});
  CheckTrains(job.Node(0, 1, FreeAddress(), settings, {"--restarts", "1"}), "n0.d1");
}

TEST_CASE("process 1 passes on what ends a job in order, and reaps what is not its own") {
  if (NoContainers()) return;
  const Job job;
  Program program(Contained(job.Train({}, {"--local", "2"})));
  REQUIRE(program.WaitForLine("step 2/", kPatience));
  const pid_t first = FirstProcess(program);
  REQUIRE(ChildrenOf(first).size() == 1);
  // An orphan of the namespace.
  Shell("nsenter -t " + std::to_string(first) + " -p -m sh -c 'sleep 0.1 & exit 0'");
  const auto deadline = Clock::now() + 5s;
  while (ChildrenOf(first).size() > 1 && Clock::now() < deadline) {
    std::this_thread::sleep_for(20ms);
  }
  CHECK(ChildrenOf(first).size() == 1);
  kill(first, SIGTERM);
  const Ending ending = program.WaitForEnd(kPatience);
  INFO(program.Transcript());
  REQUIRE(ending.ended);
  CHECK(ending.exit_code == 128 + SIGTERM);
  REQUIRE(job.Runs().size() == 1);
  CHECK(std::ifstream(job.Runs().front() + "/weights.safetensors").good());
}

TEST_CASE("process 1 ends at once by a signal that comes before anything listens") {
  if (NoContainers()) return;
  const Job job;
  Program program(Contained(job.Train({}, {})));
  const auto deadline = Clock::now() + kPatience;
  while ((FirstProcess(program) < 0 || ChildrenOf(FirstProcess(program)).empty()) &&
         Clock::now() < deadline) {
    std::this_thread::sleep_for(1ms);
  }
  const auto asked = Clock::now();
  kill(FirstProcess(program), SIGTERM);
  const Ending ending = program.WaitForEnd(kPatience);
  INFO(program.Transcript());
  REQUIRE(ending.ended);
  CHECK(ending.exit_code == 128 + SIGTERM);
  CHECK(ending.at - asked < 3s);
}

TEST_CASE("children under a subreaper end with their launcher, from their first moment on") {
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);  // orphans become children of this program
  {
    const LocalBed early({.nodes = 2});
    const auto children = AwaitChildren(early, 2);
    early.program().Signal(SIGKILL);
    CheckChildrenFollow(children);
  }
  {
    const LocalBed late({.nodes = 2});
    late.AwaitStep(2);
    const auto children = late.Processes();
    late.program().Signal(SIGKILL);
    CheckChildrenFollow(children);
  }
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 0) == 0);
}

TEST_CASE("no file holds the key of a job on one machine, however its launcher ends") {
  const LocalBed bed({.nodes = 2});
  bed.AwaitStep(1);
  const auto children = bed.Processes();
  bed.program().Signal(SIGKILL);
  bed.program().WaitForEnd(kPatience);
  CheckChildrenFollow(children);
  for (const auto& entry : std::filesystem::directory_iterator(bed.job().path())) {
    const std::string name = entry.path().filename();
    CHECK((name == "key" || name == "runs"));  // `key` is for the tests with `troupe node`
  }
}

TEST_CASE("a question in a child's first moments ends nothing") {
  const LocalBed bed({.nodes = 2, .settings = {"run.steps=2"}});
  const auto children = AwaitChildren(bed, 2);
  REQUIRE(children.size() == 2);
  for (int i = 0; i < 100; ++i) {
    for (const pid_t child : children) kill(child, SIGUSR1);
    std::this_thread::sleep_for(2ms);
  }
  const Ending ending = bed.program().WaitForEnd(kPatience);
  INFO(bed.program().Transcript());
  REQUIRE(ending.ended);
  CHECK(ending.exit_code == 0);
}
