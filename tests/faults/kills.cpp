#include "tests/faults/kills.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

#include "tests/faults/bed.hpp"

namespace troupe::testing {
namespace {

constexpr int kProcesses = 4;
constexpr int kRanks = 8;
constexpr int kSteps = 12;
constexpr std::chrono::seconds kLongest{120};
/// A process opens more files than this before the first step, those of the system included.
constexpr int kOpened = 30;
/// The processes whose shards store something: the last one has replicas.
constexpr int kWriters = 3;
/// A job writes at least as many checkpoints, also where the disk holds some of them up.
constexpr int kCheckpoints = 2;

using Random = std::mt19937_64;

int Below(Random& random, int bound) {
  return static_cast<int>(random() % static_cast<std::uint64_t>(bound));
}

/// How a process dies: by a planted fault, or by the library kill_at at a call of the system.
struct Death {
  int process = 0;
  std::string fault = {};  ///< as --plant-fault takes it
  std::string call = {};   ///< as TROUPE_KILL takes it
};

Death AtMessage(int rank, const std::string& message, int count, int generation = 0) {
  return {.process = rank / (kRanks / kProcesses),
          .fault = "kill@device " + std::to_string(rank) + "@" + message + "@" +
                   std::to_string(count) + "@" + std::to_string(generation)};
}

Death AtCall(int process, const std::string& call, const std::string& part, int count,
             bool after = false, int generation = 0) {
  return {.process = process,
          .call = std::to_string(process) + ":" + std::to_string(generation) + ":" + call + ":" +
                  part + ":" + std::to_string(count) + ":" + (after ? "after" : "before")};
}

Death Meeting(Random& random, int node, int generation) {
  if (node == 0) return AtCall(0, "accept4", "", 1 + Below(random, 8), true, generation);
  return AtCall(node, "connect", "", 1 + Below(random, 2 * node + 1), Below(random, 2) == 1,
                generation);
}

/// A second loss, in the generation after that of the first.
Death AgainIn(int first, Random& random) {
  const int rank = Below(random, kRanks);
  switch (Below(random, 5)) {
    case 0:  // the process in its place starts
      return AtCall(first, "open", "", 1 + Below(random, kOpened), false, 1);
    case 1:
      return Meeting(random, first, 1);
    case 2:
      return AtMessage(rank, "LoadShard", 1, 1);
    case 3:
      return AtMessage(rank, "RunForward", 1 + Below(random, 2), 1);
    default:
      return {.process = 0, .fault = "kill@stage language.s0 dp0@RoundBegin@1@1"};
  }
}

std::vector<Death> DeathsOf(const KillTrial& trial) {
  Random random(trial.seed * kNumKillPhases + static_cast<std::uint64_t>(trial.phase));
  const int node = Below(random, kProcesses);
  const int writer = node % kWriters;
  const int rank = Below(random, kRanks);
  const bool after = Below(random, 2) == 1;
  switch (trial.phase) {
    case KillPhase::kStart:
      return {AtCall(node, "open", "", 1 + Below(random, kOpened))};
    case KillPhase::kJoin:
      return {Meeting(random, node, 0)};
    case KillPhase::kStep:
      return {AtMessage(rank, after ? "RunForward" : "RunBackward", 1 + Below(random, 2 * kSteps))};
    case KillPhase::kUpdate:
      return {AtMessage(rank, after ? "ReduceGradients" : "UpdateParameters",
                        1 + Below(random, kSteps))};
    case KillPhase::kSnapshot:
      return {AtMessage(rank, "CopyState", 1 + Below(random, kCheckpoints))};
    case KillPhase::kWrite:
      return {AtCall(writer, "write", ".safetensors", 1 + Below(random, kCheckpoints))};
    case KillPhase::kRename:
      return {AtCall(writer, "rename", "checkpoints/", 1 + Below(random, kCheckpoints), after)};
    case KillPhase::kManifest: {
      constexpr std::array kCalls = {"write", "fsync", "rename"};
      return {AtCall(0, kCalls.at(static_cast<std::size_t>(Below(random, 3))), "manifest.json",
                     1 + Below(random, kCheckpoints), after)};
    }
    case KillPhase::kRecovery: {
      // Late enough for a checkpoint to go on from.
      std::vector<Death> deaths = {AtMessage(rank, "RunForward", 14 + Below(random, 10))};
      deaths.push_back(AgainIn(deaths.front().process, random));
      return deaths;
    }
  }
  return {};
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> Words(const Job& job, const std::vector<Death>& deaths, bool mirrors) {
  std::vector<std::string> more = {"--local", std::to_string(kProcesses), "--restarts", "4"};
  std::string call;
  for (const Death& death : deaths) {
    if (!death.fault.empty()) more.insert(more.end(), {"--plant-fault", death.fault});
    if (!death.call.empty()) call = death.call;
  }
  const std::vector<std::string> settings = {
      "run.steps=" + std::to_string(kSteps),
      "schedule.micro_batch_size=4",
      "schedule.microbatches=2",
      "checkpoint.every=2",
      "checkpoint.keep=2",
      mirrors ? "checkpoint.replicas=1" : "checkpoint.replicas=0",
      "trace.messages=false"};
  std::vector<std::string> words = {"env", "OPENBLAS_NUM_THREADS=1"};
  if (!call.empty()) {
    words.insert(words.end(), {"LD_PRELOAD=" TROUPE_KILL_AT, "TROUPE_KILL=" + call,
                               "TROUPE_KILL_ONCE=" + job.File("killed")});
  }
  const auto train = job.Train(settings, more);
  words.insert(words.end(), train.begin(), train.end());
  return words;
}

/// The number after "step " at the beginning of a line; 0 if it is no such line.
int StepOf(const std::string& line) {
  return line.starts_with("step ") ? std::atoi(line.c_str() + 5) : 0;
}

/// Reads from the lines of the launcher when processes were lost and when the job went on.
void Measure(const std::vector<Line>& lines, Clock::time_point end, KillResult& result) {
  Clock::time_point lost_at{};  // none is missing
  int latest = 0;
  const auto note = [&](Clock::time_point at) {
    if (lost_at == Clock::time_point()) return;
    result.seconds = std::max(result.seconds, std::chrono::duration<double>(at - lost_at).count());
    lost_at = {};
  };
  for (const Line& line : lines) {
    if (line.text.find("; starting it again, ") != std::string::npos) {
      ++result.losses;
      lost_at = line.at;
    }
    const int step = StepOf(line.text);
    if (step == 0) continue;
    note(line.at);
    if (step <= latest) ++result.repeated;
    latest = std::max(latest, step);
  }
  note(end);
}

/// What is wrong about what the job has left; empty: nothing.
std::string ProblemOf(const Job& job, const Undisturbed& expected) {
  if (job.Losses() != expected.losses) return "other losses";
  const std::string run = job.Runs().front();
  if (ReadFile(run + "/weights.safetensors") != expected.weights) return "other final weights";
  Program verify({TROUPE_PROGRAM, "ckpt", "verify", run});
  if (verify.WaitForEnd(kLongest).exit_code != 0) return "a bad checkpoint: " + verify.Transcript();
  return "";
}

/// The losses that a trial must see. A slow disk may have no checkpoint yet: then nothing is loaded.
int LossesOf(const std::vector<Death>& deaths, const std::string& transcript) {
  const bool loads = transcript.find("beginning again") == std::string::npos;
  const auto of_loading = [](const Death& death) {
    return death.fault.find("@LoadShard@") != std::string::npos;
  };
  const auto strikes = [&](const Death& death) { return loads || !of_loading(death); };
  return static_cast<int>(std::ranges::count_if(deaths, strikes));
}

/// Steps that a job with mirrors may repeat, of those that were complete. The second loss of a recovery
/// may come before the state is mirrored again: then it goes on from the disk.
int MostRepeated(KillPhase phase) { return phase == KillPhase::kRecovery ? kSteps : 1; }

/// "0.6 s | 1.8 s": the median of times and the longest one.
std::string MedianAndWorst(std::vector<double> times) {
  if (times.empty()) return "- | -";
  std::ranges::sort(times);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.1f s | %.1f s", times[times.size() / 2], times.back());
  return text.data();
}

/// Whether a trial kills process 0.
bool KillsFirst(const KillTrial& trial) {
  return std::ranges::any_of(DeathsOf(trial),
                             [](const Death& death) { return death.process == 0; });
}

}  // namespace

const char* NameOf(KillPhase phase) {
  constexpr std::array<const char*, kNumKillPhases> kNames = {
      "start", "join", "step", "update", "snapshot", "write", "rename", "manifest", "recovery"};
  return kNames.at(static_cast<std::size_t>(phase));
}

Undisturbed RunUndisturbed() {
  const Job job;
  const Program program(Words(job, {}, false));
  const Ending ending = program.WaitForEnd(kLongest);
  if (ending.exit_code != 0) throw std::runtime_error(program.Transcript());
  return {job.Losses(), ReadFile(job.Runs().front() + "/weights.safetensors")};
}

KillResult RunKill(const KillTrial& trial, const Undisturbed& expected) {
  const auto deaths = DeathsOf(trial);
  KillResult result{.trial = trial, .what = "", .problem = "", .transcript = ""};
  for (const Death& death : deaths) {
    result.what += (result.what.empty() ? "" : ", ") + death.fault + death.call;
  }
  const Job job;
  const Program program(Words(job, deaths, trial.mirrors()));
  const Ending ending = program.WaitForEnd(kLongest);
  Measure(program.lines(), ending.ended ? ending.at : Clock::now(), result);
  try {
    if (!ending.ended) {
      result.problem = "hangs";
    } else if (ending.exit_code != 0) {
      result.problem = "exit code " + std::to_string(ending.exit_code);
    } else if (result.losses != LossesOf(deaths, program.Transcript())) {
      result.problem = std::to_string(result.losses) + " losses";
    } else if (program.Transcript().find("it could not go on") != std::string::npos) {
      result.problem = "a process that was not killed did not go on";
    } else if (trial.mirrors() && result.repeated > MostRepeated(trial.phase)) {
      result.problem = std::to_string(result.repeated) + " steps repeated";
    } else {
      result.problem = ProblemOf(job, expected);
    }
  } catch (const std::exception& e) {
    result.problem = e.what();
  }
  if (!result.problem.empty()) result.transcript = program.Transcript();
  return result;
}

std::string TableOf(const std::vector<KillResult>& results) {
  std::string table =
      "| killed in | mirrors | trials | right | losses | median | worst | most repeated steps | of "
      "these process 0 | median | worst |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (int number = 0; number < 2 * kNumKillPhases; ++number) {
    const auto phase = static_cast<KillPhase>(number / 2);
    const bool mirrors = number % 2 == 1;
    std::vector<double> times;
    std::vector<double> times_of_first;
    int right = 0;
    int losses = 0;
    int repeated = 0;
    for (const KillResult& result : results) {
      if (result.trial.phase != phase || result.trial.mirrors() != mirrors) continue;
      times.push_back(result.seconds);
      if (KillsFirst(result.trial)) times_of_first.push_back(result.seconds);
      right += result.problem.empty() ? 1 : 0;
      losses += result.losses;
      repeated = std::max(repeated, result.repeated);
    }
    if (times.empty()) continue;
    table += std::string("| ") + NameOf(phase) + " | " + (mirrors ? "yes" : "no") + " | " +
             std::to_string(times.size()) + " | " + std::to_string(right) + " | " +
             std::to_string(losses) + " | " + MedianAndWorst(times) + " | " +
             std::to_string(repeated) + " | " + std::to_string(times_of_first.size()) + " | " +
             MedianAndWorst(times_of_first) + " |\n";
  }
  return table;
}

std::string ToLine(const KillResult& result) {
  std::ostringstream line;
  line << static_cast<int>(result.trial.phase) << '\t' << result.trial.seed << '\t' << result.losses
       << '\t' << result.seconds << '\t' << result.repeated << '\t' << result.what << '\t'
       << result.problem.substr(0, result.problem.find('\n')) << "\t.";
  return line.str();
}

std::optional<KillResult> FromLine(const std::string& line) {
  std::vector<std::string> parts;
  std::istringstream rest(line);
  for (std::string part; std::getline(rest, part, '\t');) parts.push_back(part);
  if (parts.size() != 8) return std::nullopt;
  KillResult result{.trial = {static_cast<KillPhase>(std::stoi(parts[0])), std::stoull(parts[1])},
                    .what = parts[5],
                    .problem = parts[6],
                    .transcript = ""};
  result.losses = std::stoi(parts[2]);
  result.seconds = std::stod(parts[3]);
  result.repeated = std::stoi(parts[4]);
  return result;
}

}  // namespace troupe::testing
