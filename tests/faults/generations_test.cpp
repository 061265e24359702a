// Jobs that go on: with a spare in a lost machine's place, or with a process that was held for lost.
#include <atomic>
#include <thread>

#include "tests/faults/checks.hpp"

using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

constexpr int kSteps = 12;

std::vector<std::string> Settings() {
  return {"run.steps=" + std::to_string(kSteps), "schedule.micro_batch_size=4",
          "schedule.microbatches=2", "checkpoint.every=2", "checkpoint.async=false"};
}

/// Two nodes and a spare.
struct SparedJob {
  explicit SparedJob(const std::vector<std::string>& settings) {
    const std::string join = FreeAddress();
    const auto start = [&](int node, const std::vector<std::string>& more) {
      auto words = job.Node(node, 2, join, settings, {"--restarts", "1"});
      words.insert(words.end(), more.begin(), more.end());
      return std::make_unique<Program>(words);
    };
    first = start(0, {});
    spare = start(1, {"--spare"});
    second = start(1, {});
    REQUIRE(first->WaitForLine("a spare has come from 127.0.0.1", kPatience));
  }

  Job job;
  std::unique_ptr<Program> first;
  std::unique_ptr<Program> spare;
  std::unique_ptr<Program> second;
};

/// A machine on which a process gets a twentieth of the time, until this object is destroyed.
class SlowMachine {
 public:
  explicit SlowMachine(pid_t process)
      : thread_([this, process] {
          while (!done_ && kill(process, SIGSTOP) == 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(19));
            kill(process, SIGCONT);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        }) {}
  ~SlowMachine() {
    done_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a spare takes the place of a lost machine, and the losses do not show it") {
  // It gets the state of the lost machine from the disk, or from the memory of the other one. A process
  // without its launcher ends, since nothing could start it again.
  enum class Way { kDisk, kMemory, kLauncherAlone };
  const Way way = GENERATE(Way::kDisk, Way::kMemory, Way::kLauncherAlone);
  const bool mirrors = way != Way::kDisk;
  const auto settings = [&] {
    auto all = Settings();
    if (mirrors) all.insert(all.end(), {"checkpoint.every=0", "checkpoint.replicas=1"});
    return all;
  }();
  const Job undisturbed;
  const Program all(undisturbed.Train(Settings(), {"--local", "2"}));
  REQUIRE(all.WaitForEnd(kPatience).exit_code == 0);
  const SparedJob spared(settings);
  const Program& first = *spared.first;
  REQUIRE(first.WaitForLine("step 5/", kPatience));
  const auto survivors = ChildrenOf(first.pid());
  if (way != Way::kLauncherAlone) {
    for (const pid_t child : ChildrenOf(spared.second->pid())) kill(child, SIGKILL);
  }
  spared.second->Signal(SIGKILL);
  REQUIRE(first.WaitForLine("resuming after step ", kPatience));
  CHECK(ChildrenOf(first.pid()) == survivors);
  const Ending ending = first.WaitForEnd(kPatience);
  INFO(first.Transcript() << spared.spare->Transcript());
  CHECK(ending.exit_code == 0);
  CHECK(spared.spare->WaitForEnd(kPatience).exit_code == 0);
  CHECK_THAT(first.Transcript(), Catch::Contains("takes the place of n1"));
  CHECK_THAT(first.Transcript(), Catch::Contains(mirrors ? ", from memory" : "/checkpoints/step-"));
  CHECK_THAT(spared.spare->Transcript(), Catch::Contains("the spare takes the place of n1"));
  CHECK(spared.job.Losses() == undisturbed.Losses());
}

TEST_CASE("a slow machine is named, and a spare takes its place") {
  // Of four processes on a machine the others go on, and so does their launcher.
  const bool many = GENERATE(false, true);
  const std::string name = many ? "n1.d0" : "n1";
  const int steps = 60;
  const Job undisturbed;
  auto settings = Settings();
  settings.push_back("run.steps=" + std::to_string(steps));
  const Program all(undisturbed.Train(settings, {"--local", "2"}));
  REQUIRE(all.WaitForEnd(kPatience).exit_code == 0);
  settings.insert(settings.end(), {"checkpoint.every=0", "checkpoint.replicas=1",
                                   "cluster.slow_steps=4", "cluster.replace_slow=true",
                                   many ? "cluster.processes=device" : "cluster.processes=node"});
  const SparedJob spared(settings);
  const Program& first = *spared.first;
  REQUIRE(first.WaitForLine("step 10/", kPatience));
  const auto children = ChildrenOf(spared.second->pid());
  REQUIRE(children.size() == (many ? 4 : 1));
  const SlowMachine slow(children.front());
  const Ending ending = first.WaitForEnd(kPatience);
  INFO(first.Transcript() << spared.second->Transcript() << spared.spare->Transcript());
  CHECK(ending.exit_code == 0);
  CHECK(spared.spare->WaitForEnd(kPatience).exit_code == 0);
  CHECK(spared.second->WaitForEnd(kPatience).exit_code == 0);  // its launcher starts nothing again
  CHECK_THAT(first.Transcript(),
             Catch::Contains("(" + name + ")") && Catch::Contains(" slow: the work of rank") &&
                 Catch::Contains("takes the place of " + name) && Catch::Contains(", from memory"));
  CHECK_THAT(spared.second->Transcript(), Catch::Contains(name + " is slow: it leaves its place"));
  CHECK(spared.job.Losses() == undisturbed.Losses());
}

TEST_CASE("a job that loses a process and is asked to end does both") {
  struct Order {
    int victim;
    bool signal_first;
    std::chrono::milliseconds between;
  };
  const Order order = GENERATE(Order{1, false, 0ms}, Order{1, false, 50ms}, Order{1, false, 300ms},
                               Order{0, false, 200ms}, Order{0, true, 0ms}, Order{1, true, 20ms});
  CAPTURE(order.victim, order.signal_first, order.between.count());
  const Job job;
  auto settings = Settings();
  settings.push_back("run.steps=5000");
  Program program(job.Train(settings, {"--local", "2", "--restarts", "2"}));
  REQUIRE(program.WaitForLine("step 5/", kPatience));
  const auto victim = ChildrenOf(program.pid()).at(static_cast<std::size_t>(order.victim));
  const auto lose = [&] { kill(victim, SIGKILL); };
  const auto ask = [&] { program.Signal(SIGTERM); };
  order.signal_first ? ask() : lose();
  std::this_thread::sleep_for(order.between);
  order.signal_first ? lose() : ask();
  const Ending ending = program.WaitForEnd(kPatience);
  INFO(program.Transcript());
  REQUIRE(ending.ended);
  CHECK(ending.exit_code == 128 + SIGTERM);
  CHECK(program.WaitForLine("interrupted after step", 0ms));
  CHECK_FALSE(program.WaitForLine("ended at once", 0ms));
}

TEST_CASE("a spare that is not needed ends with the job") {
  const Job job;
  const std::string join = FreeAddress();
  const auto settings = Settings();
  const Program first(job.Node(0, 2, join, settings, {"--restarts", "1"}));
  const Program spare(job.Node(1, 2, join, settings, {"--restarts", "1", "--spare"}));
  REQUIRE(spare.WaitForLine("waiting as a spare", kPatience));
  const Program second(job.Node(1, 2, join, settings, {"--restarts", "1"}));
  REQUIRE(first.WaitForEnd(kPatience).exit_code == 0);
  CHECK(spare.WaitForEnd(kPatience).exit_code == 0);
  CHECK_THAT(spare.Transcript(),
             Catch::Contains("the job ended without this spare: the job is done"));
  const Program useless(job.Node(1, 2, join, settings, {"--spare"}));
  CHECK(useless.WaitForEnd(kPatience).exit_code == 2);
}

TEST_CASE("a process that was held for lost wakes up and joins again") {
  const Job job;
  const std::vector<std::string> settings = {"run.steps=30", "checkpoint.every=2",
                                             "cluster.dead_after_s=2"};
  const Program program(job.Train(settings, {"--local", "2", "--restarts", "1"}));
  REQUIRE(program.WaitForLine("step 5/", kPatience));
  const auto children = ChildrenOf(program.pid());
  kill(children.at(1), SIGSTOP);
  REQUIRE(program.WaitForLine("troupe: lost n1: it is stopped", kPatience));
  kill(children.at(1), SIGCONT);
  REQUIRE(program.WaitForLine("resuming after step ", kPatience));
  CHECK(ChildrenOf(program.pid()) == children);
  const Ending ending = program.WaitForEnd(kPatience);
  INFO(program.Transcript());
  CHECK(ending.exit_code == 0);
  CHECK(job.Losses().size() == 30);
}

TEST_CASE("a clock that jumps changes nothing, also when a process is lost") {
  const Job undisturbed;
  const Program all(undisturbed.Train(Settings(), {"--local", "2"}));
  REQUIRE(all.WaitForEnd(kPatience).exit_code == 0);
  const Job job;
  std::vector<std::string> words = {"env", "LD_PRELOAD=" TROUPE_JUMPING_CLOCK};
  const auto train = job.Train(Settings(), {"--local", "2", "--restarts", "1"});
  words.insert(words.end(), train.begin(), train.end());
  const Program program(words);
  REQUIRE(program.WaitForLine("step 5/", kPatience));
  kill(ChildrenOf(program.pid()).at(1), SIGKILL);
  const Ending ending = program.WaitForEnd(kPatience);
  INFO(program.Transcript());
  CHECK(ending.exit_code == 0);
  CHECK_THAT(program.Transcript(), Catch::Contains("resuming after step "));
  CHECK(job.Losses() == undisturbed.Losses());
}
