#include "tests/faults/trials.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <thread>

#include "tests/faults/bed.hpp"

namespace troupe::testing {
namespace {

enum Kind : std::size_t { kKilled, kStopped, kCableOut, kSleeping, kLost, kThrowing };

constexpr int kNodes = 4;
constexpr int kExitFailed = 1;
constexpr int kExitLostProcess = 3;
/// Beyond a limit: distinguishes a late process from one that hangs.
constexpr double kGrace = 20.0;

struct Expected {
  std::string text;
  int exit_code = kExitLostProcess;
  std::string or_text = {};  ///< as good as `text`; empty: there is no other
};

bool Says(const std::string& line, const Expected& expected) {
  return line.find(expected.text) != std::string::npos ||
         (!expected.or_text.empty() && line.find(expected.or_text) != std::string::npos);
}

std::string NameOf(int node) { return "n" + std::to_string(node); }

/// What `node` must say when `kind` has befallen `victim`.
Expected ExpectedOf(std::size_t kind, int victim, int node) {
  switch (kind) {
    case kStopped:
      return {"lost " + NameOf(victim) + ": it is stopped"};
    case kCableOut:
      return {node == victim ? "none of them answers: this node is cut off"
                             : "lost " + NameOf(victim) + ": it vanished"};
    case kSleeping:
      return {"stage language.s1 dp0 on n1 is stuck: its handler of Activation", kExitFailed};
    case kLost:
      // Where another message follows, its receiver misses the one before.
      return {"the message is lost", kExitFailed, "expected the slice"};
    case kThrowing:
      return {"a planted fault", kExitFailed};
    default:
      return {"lost " + NameOf(victim)};
  }
}

/// Causes the fault, at a moment that `random` chooses, or waits until a planted one has struck.
void Strike(std::size_t kind, int victim, std::mt19937_64& random, Bed& bed, TrialResult& result) {
  const double wait_s = std::uniform_real_distribution<double>(0.0, 1.5)(random);
  bed.AwaitStep(1);
  if (kind >= kSleeping) return;
  std::this_thread::sleep_for(std::chrono::duration<double>(wait_s));  // the random moment
  if (kind == kKilled) bed.Kill(victim);
  if (kind == kStopped) bed.Stop(victim);
  if (kind == kCableOut) bed.LinkDown(victim);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), " %s, %.3f s after step 1", NameOf(victim).c_str(),
                wait_s);
  result.what += text.data();
}

/// The last step that the first node printed: when a planted fault struck, as far as one can see.
Clock::time_point LastStep(const Bed& bed) {
  Clock::time_point last{};
  for (const Line& line : bed[0].lines()) {
    if (line.text.rfind("step ", 0) == 0) last = line.at;
  }
  return last;
}

/// The first line of `node` that says what is expected, not before the fault.
std::optional<Line> Named(const Bed& bed, int node, const Expected& expected,
                          std::chrono::milliseconds timeout) {
  if (expected.or_text.empty()) return bed.WaitForLine(node, expected.text, timeout);
  bed[node].WaitForEnd(timeout);
  for (const Line& line : bed[node].lines()) {
    if (Says(line.text, expected)) return line;
  }
  return std::nullopt;
}

/// Looks at one process: notes what is wrong and how long it took to say the right thing.
void Judge(const Bed& bed, int victim, int node, TrialResult& result) {
  const std::size_t kind = result.trial.kind;
  const Expected expected = ExpectedOf(kind, victim, node);
  const double limit = FaultKinds()[kind].limit_s;
  const auto patience = std::chrono::milliseconds(static_cast<int>((limit + kGrace) * 1e3));
  const auto line = Named(bed, node, expected, patience);
  const Ending ending = bed[node].WaitForEnd(patience);
  const auto note = [&](Flaw flaw, const std::string& text) {
    result.flaws[static_cast<std::size_t>(flaw)] = true;
    result.problem += (result.problem.empty() ? "" : "; ") + NameOf(node) + text;
  };
  if (!ending.ended) return note(Flaw::kHangs, " hangs");
  if (ending.exit_code != expected.exit_code) {
    note(Flaw::kExitCode, " ends with exit code " + std::to_string(ending.exit_code));
  }
  if (!line && ending.last_line.empty()) return note(Flaw::kSilent, " is silent");
  if (!line || !Says(ending.last_line, expected)) {
    return note(Flaw::kMisnamed, " says: " + ending.last_line);
  }
  const double seconds = kind < kSleeping
                             ? bed.SinceFault(line->at)
                             : std::chrono::duration<double>(line->at - LastStep(bed)).count();
  if (seconds > limit) note(Flaw::kLate, " is late: " + std::to_string(seconds) + " s");
  result.seconds = std::max(result.seconds, seconds);
}

}  // namespace

const std::vector<FaultKind>& FaultKinds() {
  static const std::vector<FaultKind> kinds = {
      {"killed", 1.0, "", 0},
      {"stopped for good", 10.0, "", 0},
      {"cable pulled", 5.0, "", 0},
      {"sleeping stage", 10.0, "sleep@stage language.s1 dp0@Activation@", 4},
      {"lost message", 15.0, "lose@leader vision>language/destination.0@Slice@", 16},
      {"throwing stage", 5.0, "throw@stage language.s0 dp0@Activation@", 4},
  };
  return kinds;
}

TrialResult RunTrial(const Trial& trial) {
  const FaultKind& kind = FaultKinds()[trial.kind];
  std::mt19937_64 random(trial.seed);
  const int victim = static_cast<int>(random() % kNodes);
  // Not before the second step is over: what is measured begins with a step that was printed.
  const std::uint64_t per_step = std::max<std::uint64_t>(kind.messages_per_step, 1);
  const std::string count = std::to_string(2 * per_step + 1 + random() % (12 * per_step));
  TrialResult result;
  result.trial = trial;
  result.what = kind.name;
  BedOptions options{.nodes = kNodes};
  if (!kind.planted.empty()) {
    options.faults.push_back(kind.planted + count);
    result.what += " " + options.faults.back();
  }
  try {
    Bed bed(options);
    Strike(trial.kind, victim, random, bed, result);
    for (int node = 0; node < kNodes; ++node) {
      if (node == victim && (trial.kind == kKilled || trial.kind == kStopped)) continue;
      Judge(bed, victim, node, result);
    }
    if (!result.problem.empty()) result.transcript = bed.Transcript();
  } catch (const std::exception& e) {
    result.problem = e.what();
  }
  return result;
}

std::string TableOf(const std::vector<TrialResult>& results) {
  std::array<char, 160> row{};
  std::snprintf(row.data(), row.size(), "%-17s %6s %6s %6s %6s %8s %5s %5s %11s %6s\n", "fault",
                "trials", "named", "hangs", "silent", "misnamed", "late", "code", "worst time",
                "limit");
  std::string table = row.data();
  for (std::size_t kind = 0; kind < FaultKinds().size(); ++kind) {
    int trials = 0;
    int named = 0;
    double worst = 0.0;
    std::array<int, kNumFlaws> flaws{};
    for (const TrialResult& result : results) {
      if (result.trial.kind != kind) continue;
      ++trials;
      named += result.problem.empty() ? 1 : 0;
      worst = std::max(worst, result.seconds);
      for (std::size_t flaw = 0; flaw < flaws.size(); ++flaw) flaws[flaw] += result.flaws[flaw];
    }
    if (trials == 0) continue;
    std::snprintf(row.data(), row.size(), "%-17s %6d %6d %6d %6d %8d %5d %5d %9.2f s %4.0f s\n",
                  FaultKinds()[kind].name.c_str(), trials, named, flaws[0], flaws[1], flaws[2],
                  flaws[3], flaws[4], worst, FaultKinds()[kind].limit_s);
    table += row.data();
  }
  return table;
}

}  // namespace troupe::testing
