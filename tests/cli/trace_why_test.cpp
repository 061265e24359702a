// Faults are planted, and `troupe trace why` is asked whose they are: with nothing but what the run
// left behind.
#include <random>

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
      const std::string message = draw(0, 1) == 0 ? "Activation" : "FromSet<BackwardDone>";
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

}  // namespace

TEST_CASE("trace why names the root of a planted stall", "[cli]") { Try(0, 4, 0); }

TEST_CASE("trace why names the root of 200 planted stalls", "[cli][slow]") { Try(0, 199, 2); }

}  // namespace troupe
