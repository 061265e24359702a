// Faults are planted, and `troupe trace why` is asked whose they are: with nothing but what the run
// left behind.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <signal.h>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/cli/process.hpp"
#include "tests/cli/run_folder.hpp"

namespace troupe {
namespace {

/// A fault, and what the answer must hold: one line with all of `words`.
struct Trial {
  std::string kind;
  std::string fault;
  std::vector<std::string> words;
};

const std::vector<std::string> kStages = {"vision.s0",   "vision.s1",   "detail.s0",
                                          "language.s0", "language.s1", "language.s2",
                                          "language.s3", "language.s4"};

/// Messages of a kind that an actor gets are counted from 1; a step has 16 microbatches, and there
/// are 4 steps.
Trial TrialOf(int seed) {
  std::mt19937_64 random(static_cast<std::uint64_t>(seed) * 7919 + 17);
  const auto draw = [&](int from, int to) {
    return from + static_cast<int>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  const auto at = [&](const std::string& actor, const std::string& message, int count) {
    return "@" + actor + "@" + message + "@" + std::to_string(count);
  };
  const int rank = draw(0, 7);
  const std::string device = "device " + std::to_string(rank);
  const int count = draw(20, 60);
  switch (seed % 5) {
    case 0: {
      const std::string pass = draw(0, 1) == 0 ? "RunForward" : "RunBackward";
      return {"slow device", "slow" + at(device, pass, count), {device + " ", "<- root"}};
    }
    case 1: {
      const std::string stage = "stage " + kStages[static_cast<std::size_t>(draw(4, 7))] + " dp0";
      const std::string message = draw(0, 1) == 0 ? "Activation" : "BackwardDone";
      return {"slow stage", "slow" + at(stage, message, count), {stage + " ", "<- root"}};
    }
    case 2: {
      const std::string stage = "stage " + kStages[static_cast<std::size_t>(draw(4, 7))] + " dp0";
      return {"lost message", "lose" + at(stage, "Activation", count), {stage, "lost"}};
    }
    case 3: {
      const std::string leader =
          std::string("leader ") + (draw(0, 1) == 0 ? "vision" : "detail") + ">language/source.0";
      return {"credit that is not given back",
              "lose" + at(leader, "GradientSlice", count),
              {leader, "lost"}};
    }
    default: {
      const std::string encoder = "device " + std::to_string(draw(0, 2));
      return {"encoder that never answers",
              "sleep" + at(encoder, draw(0, 1) == 0 ? "RunForward" : "RunBackward", count),
              {encoder + " runs "}};
    }
  }
}

bool Names(const std::string& answer, const Trial& trial) {
  for (const std::string& line : LinesOf(answer)) {
    bool all = true;
    for (const std::string& word : trial.words) all = all && line.find(word) != std::string::npos;
    if (all) return true;
  }
  return false;
}

/// Empty, or what is wrong.
std::string FlawOf(const Trial& trial) {
  const RunFolder folder;
  const Outcome run =
      RunTroupe({"train", "configs/synthetic_8stages.toml", "--set", "run.dir=" + (folder / "runs"),
                 "--set", "cluster.stall_after_s=0.5", "--set", "cluster.pass_timeout_s=1",
                 "--plant-fault", trial.fault});
  if (run.timed_out) return "the run hangs";
  const Outcome answer = RunTroupe({"trace", "why", folder.Runs().at(0)});
  if (answer.exit_code != 0) return "no answer: " + answer.err;
  if (Names(answer.out, trial)) return "";
  return "misnamed:\n" + answer.out + "\nthe run said: " + run.err;
}

void Try(int first, int last, int allowed) {
  int flaws = 0;
  for (int seed = first; seed <= last; ++seed) {
    const Trial trial = TrialOf(seed);
    const std::string flaw = FlawOf(trial);
    if (flaw.empty()) continue;
    ++flaws;
    UNSCOPED_INFO(trial.kind << ", " << trial.fault << ": " << flaw);
  }
  if (last - first > 50) WARN(flaws << " of " << last - first + 1 << " misnamed");
  CHECK(flaws <= allowed);
}

constexpr const char* kLosesLast = "lose@stage language.s1 dp0@Activation@12";

/// `troupe train` with a fault; more than once in one run directory if `more` says so.
Outcome TrainWith(const RunFolder& folder, const std::string& fault,
                  const std::vector<std::string>& more = {}) {
  auto arguments = folder.Arguments("train", "configs/shapes.toml",
                                    {"run.steps=6", "checkpoint.every=5",
                                     "cluster.stall_after_s=0.5", "cluster.pass_timeout_s=1"});
  if (!fault.empty()) arguments.insert(arguments.end(), {"--plant-fault", fault});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunTroupe(arguments);
}

std::string WhyOf(const std::string& run) {
  const Outcome outcome = RunTroupe({"trace", "why", run});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  return outcome.out;
}

/// The line that begins with "root: ", without that.
std::string RootIn(const std::string& answer) {
  for (const std::string& line : LinesOf(answer)) {
    if (line.rfind("root: ", 0) == 0) return line.substr(6);
  }
  return "";
}

}  // namespace

TEST_CASE("trace why uses the waits of a stalled run, of its last start", "[cli]") {
  const RunFolder folder;
  // The last of two microbatches in the last of six steps: nothing comes behind it.
  CHECK(TrainWith(folder, kLosesLast).exit_code == 1);
  const std::string run = folder.Runs().at(0);
  REQUIRE(std::filesystem::exists(run + "/trace/waits.json"));
  const std::string first = WhyOf(run);
  CHECK_THAT(first, Catch::StartsWith("the run stalled; the chain of waits:\n"));
  CHECK_THAT(first, Catch::Contains(" microbatch 11 ") && Catch::Contains(" (step 6 mb 1)\n"));
  CHECK_THAT(RootIn(first), Catch::StartsWith("stage language.s1 dp0 waits for the activation of "
                                              "microbatch 11 from stage language.s0 dp0") &&
                                Catch::Contains("lost"));

  // The next start has one step left, and stalls elsewhere; the one after that does not stall.
  CHECK(TrainWith(folder, "lose@leader vision>language/source.0@GradientSlice@2", {"--resume", run})
            .exit_code == 1);
  REQUIRE(std::filesystem::exists(run + "/trace-2/waits.json"));
  CHECK_THAT(RootIn(WhyOf(run)),
             Catch::StartsWith("leader vision>language/source.0 waits for the gradient of "
                               "microbatch 1 "));
  CHECK(TrainWith(folder, "", {"--resume", run}).exit_code == 0);
  REQUIRE(std::filesystem::exists(run + "/trace-3/n0.trace"));
  CHECK_THAT(WhyOf(run), Catch::Contains(" step 6") && !Catch::Contains("stalled") &&
                             !Catch::Contains("failed"));
}

TEST_CASE("waits that cannot be read are named, and the trace is asked instead", "[cli]") {
  const RunFolder folder;
  CHECK(TrainWith(folder, kLosesLast).exit_code == 1);
  const std::string run = folder.Runs().at(0);
  const std::string waits = run + "/trace/waits.json";
  const std::string whole = BytesOf(waits);
  REQUIRE(whole.size() > 200);
  const std::vector<std::pair<std::string, std::string>> trials = {
      {"[]", "expected waits, got an empty array"},
      {"{}", "expected an array of waits, got an object"},
      {"", "expected JSON, the file is empty"},
      {whole.substr(0, whole.size() / 2), "expected JSON, it ends in the middle"},
      {"[1e999]", "expected JSON, a number in it is too large"},
      {"[1]", "actor 0: expected an object, got a number"},
      {R"([{"who":"a"},{"who":3}])", "actor 1: \"who\": expected a string, got a number"}};
  for (const auto& [text, problem] : trials) {
    std::ofstream(waits, std::ios::binary) << text;
    const std::string answer = WhyOf(run);
    CHECK_THAT(answer, Catch::StartsWith("not used: " + waits + ": " + problem + "; what follows"));
    CHECK_THAT(answer, Catch::Contains("\nthe run failed: nothing has moved anywhere for ") &&
                           Catch::Contains("\nstage language.s1 dp0 last handled "));
  }
  // What a process was asked for is used as long as nothing better is there.
  std::filesystem::remove(waits);
  std::ofstream(run + "/trace/waits-asked.json", std::ios::binary) << whole;
  CHECK_THAT(WhyOf(run), Catch::Contains("when it was last asked by SIGUSR1; the chain of waits"));
  std::ofstream(run + "/trace/waits-asked.json", std::ios::binary) << "[[]]";
  CHECK_THAT(WhyOf(run), Catch::Contains("waits-asked.json: actor 0: expected an object, got an "
                                         "array; what follows is from the trace alone\n"));
}

TEST_CASE("what a process was asked for is shown until the run has ended well", "[cli]") {
  const RunFolder folder;
  CHECK(TrainWith(folder, "").exit_code == 0);
  const std::string run = folder.Runs().at(0);
  std::ofstream(run + "/trace/waits-asked.json") << R"([{"who":"stage a","busy":true}])";
  CHECK_THAT(WhyOf(run), !Catch::Contains("asked by SIGUSR1"));
  // A process that was stopped and resumes leaves nothing open in the trace.
  std::filesystem::remove(run + "/weights.safetensors");
  CHECK_THAT(WhyOf(run), Catch::Contains("when it was last asked by SIGUSR1, no wait had lasted "));
}

TEST_CASE("a question to a run that makes progress finds no lost message", "[cli]") {
  const RunFolder folder;
  ProcessOptions options;
  options.call_at = "step 2/";
  std::vector<std::string> answers;
  options.call = [&](int process) {
    const std::string run = folder.Runs().at(0);
    const std::string asked = run + "/trace/waits-asked.json";
    for (int i = 0; i < 3; ++i) {
      std::filesystem::remove(asked);
      kill(process, SIGUSR1);
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (!std::filesystem::exists(asked) && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      answers.push_back(WhyOf(run));
    }
    kill(process, SIGINT);
  };
  CHECK(folder.Train({"run.steps=2000"}, options).exit_code == 130);
  REQUIRE(answers.size() == 3);
  for (const std::string& answer : answers) {
    CHECK_THAT(answer, Catch::Contains("when it was last asked by SIGUSR1") &&
                           !Catch::Contains("a message between") &&
                           !Catch::Contains("which has sent it"));
  }
}

TEST_CASE("the time of a checkpoint is named wherever the time of its step is", "[cli]") {
  const std::string local = GENERATE("1", "2");
  const RunFolder folder;
  auto arguments =
      folder.Arguments("train", "configs/shapes.toml",
                       {"run.steps=5", "checkpoint.every=2", "checkpoint.async=false"});
  // Writing its first shard takes one device 400 ms longer.
  arguments.insert(arguments.end(),
                   {"--local", local, "--plant-fault", "slow@device 2@SaveShard@1"});
  const Outcome outcome = RunTroupe(arguments);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const std::string run = folder.Runs().at(0);
  const auto of_run = [&](const std::string& verb, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"trace", verb, run};
    all.insert(all.end(), more.begin(), more.end());
    return RunTroupe(all).out;
  };
  CHECK_THAT(of_run("summary", {}), Catch::Contains("\n2 checkpoints, of steps 2 to 4: ") &&
                                        Catch::Contains("; the longest, of step 2, took "));
  CHECK_THAT(RootIn(of_run("why", {"--step", "3"})),
             Catch::StartsWith("device 2 (n") &&
                 Catch::Contains("): writing the checkpoint of step 2 (language.s") &&
                 Catch::Contains(" ms, usual none"));
  CHECK_THAT(of_run("critical", {"--step", "3"}),
             Catch::Contains(", checkpoint ") &&
                 Catch::Contains("  writing the checkpoint of step 2 (language.s"));
  CHECK_THAT(of_run("critical", {"--step", "4"}), !Catch::Contains("checkpoint"));
  CHECK(of_run("sql", {"select step, unit, count(distinct rank) n from work where kind = "
                       "'checkpoint' group by 1, 2 order by 1",
                       "--format", "csv"}) == "step,unit,n\n3,2,8\n5,4,8\n");
}

TEST_CASE("a checkpoint beside the steps has a line, and its snapshots are work", "[cli]") {
  const std::string local = GENERATE("1", "2");
  const RunFolder folder;
  auto arguments =
      folder.Arguments("train", "configs/shapes.toml", {"run.steps=5", "checkpoint.every=3"});
  arguments.insert(arguments.end(), {"--local", local});
  const Outcome outcome = RunTroupe(arguments);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const std::string run = folder.Runs().at(0);
  const auto of_run = [&](const std::string& verb, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"trace", verb, run};
    all.insert(all.end(), more.begin(), more.end());
    return RunTroupe(all).out;
  };
  CHECK_THAT(of_run("summary", {}), Catch::Contains("\ncheckpoint of step 3: ") &&
                                        Catch::Contains(" (writers on a core for ") &&
                                        Catch::Contains(" to copy; training waited "));
  CHECK(of_run("sql", {"select step, unit, count(distinct rank) n from work where kind = "
                       "'snapshot' group by 1, 2 order by 1",
                       "--format", "csv"}) == "step,unit,n\n4,3,8\n");
}

TEST_CASE("trace why names the root of a planted stall", "[cli]") { Try(0, 4, 0); }

TEST_CASE("trace why names the root of 200 planted stalls", "[cli][slow]") { Try(0, 199, 2); }

}  // namespace troupe
