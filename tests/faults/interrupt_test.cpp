// Ctrl-C in front of several processes.
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "tests/faults/checks.hpp"
#include "tests/faults/stranger.hpp"

using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

/// Objects of /dev/shm that no process has mapped.
std::set<std::string> UnusedObjects() {
  const std::string mapped =
      Shell("cat /proc/[0-9]*/maps 2>/dev/null | grep -o '/dev/shm/.*' || :");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    if (mapped.find(entry.path().string()) == std::string::npos) names.insert(entry.path());
  }
  return names;
}

/// Objects of /dev/shm that `processes` have mapped: they have no name any more.
int MappedObjects(const std::vector<pid_t>& processes) {
  int count = 0;
  for (const pid_t process : processes) {
    std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
    for (std::string line; std::getline(maps, line);) {
      count += line.find("/dev/shm/") != std::string::npos ? 1 : 0;
    }
  }
  return count;
}

/// A job that trains, and what it must not leave behind.
struct Interrupted {
  Interrupted() {
    bed.AwaitStep(2);
    processes = bed.Processes();
    REQUIRE(processes.size() == 2);
    CHECK(MappedObjects(processes) > 0);  // else this test no longer knows where to look
  }

  /// How it ended, which must be as Ctrl-C says, with nothing left over.
  Ending Await() const {
    const Ending ending = bed.program().WaitForEnd(kPatience);
    INFO(bed.program().Transcript());
    REQUIRE(ending.ended);
    CHECK(ending.exit_code == 128 + SIGINT);
    for (const pid_t process : processes) {
      CHECK_FALSE(IsAlive(process));
      CHECK(ListeningPorts(process).empty());
    }
    std::set<std::string> left = UnusedObjects();
    for (const std::string& name : before) left.erase(name);
    CHECK(left == std::set<std::string>());
    for (const auto& entry : std::filesystem::directory_iterator(bed.job().path())) {
      const std::string name = entry.path().filename();
      CHECK((name == "key" || name == "runs"));
    }
    return ending;
  }

  const std::set<std::string> before = UnusedObjects();
  LocalBed bed{{.nodes = 2}};
  std::vector<pid_t> processes;
};

}  // namespace

TEST_CASE("Ctrl-C saves what two processes have trained and leaves nothing else behind") {
  Interrupted job;
  CHECK(ListeningPorts(job.bed.program().pid()).empty());
  for (const pid_t process : job.processes) {
    // They share memory: no port is needed for tensors, and no process joins any more.
    CHECK(ListeningPorts(process).empty());
  }
  const auto pressed = Clock::now();
  job.bed.program().Signal(SIGINT);
  CHECK(job.Await().at - pressed < 15s);
  const auto runs = job.bed.job().Runs();
  REQUIRE(runs.size() == 1);
  CHECK(std::filesystem::file_size(runs.front() + "/weights.safetensors") > 0);
}

TEST_CASE("a Ctrl-C that is delivered twice is one, and saves what was trained") {
  Interrupted job;
  job.bed.program().Signal(SIGINT);
  std::this_thread::sleep_for(50ms);  // else the system makes one signal of the two
  job.bed.program().Signal(SIGINT);
  job.Await();
  CHECK_FALSE(job.bed.program().WaitForLine("ended at once", 0ms));
  const auto runs = job.bed.job().Runs();
  REQUIRE(runs.size() == 1);
  CHECK(std::filesystem::file_size(runs.front() + "/weights.safetensors") > 0);
}

TEST_CASE("a second Ctrl-C ends at once") {
  Interrupted job;
  // A process that cannot finish the step is the reason to press twice.
  kill(job.processes[1], SIGSTOP);
  job.bed.program().Signal(SIGINT);
  REQUIRE(job.bed.program().WaitForLine("once more ends at once", kPatience));
  std::this_thread::sleep_for(600ms);  // what comes sooner is the same request
  kill(job.processes[1], SIGCONT);
  const auto pressed = Clock::now();
  job.bed.program().Signal(SIGINT);
  const Ending ending = job.Await();
  CHECK(ending.at - pressed < 3s);
  CHECK(ending.last_line == "ended at once: what was not saved yet is lost");
}
