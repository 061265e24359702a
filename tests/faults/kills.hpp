// Processes of a job that are killed in a chosen phase, and how the job goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/faults/program.hpp"

namespace troupe::testing {

/// Where in its life a job loses a process.
enum class KillPhase {
  kStart,     ///< before it has met
  kJoin,      ///< while it meets
  kStep,      ///< in a pass of a step
  kUpdate,    ///< while gradients are summed or parameters change
  kSnapshot,  ///< while a rank copies its state
  kWrite,     ///< in the middle of a file of a checkpoint
  kRename,    ///< before or after such a file gets its name
  kManifest,  ///< while the checkpoint is published
  kRecovery,  ///< while the job recovers from another loss
};
inline constexpr int kNumKillPhases = 9;
const char* NameOf(KillPhase phase);

struct KillTrial {
  KillPhase phase = KillPhase::kStart;
  std::uint64_t seed = 0;  ///< the process and the moment follow from it
  /// Processes hold mirrors of each other's state: no more than the step before is repeated.
  bool mirrors() const { return seed % 2 == 1; }
};

struct KillResult {
  KillTrial trial;
  std::string what;      ///< "--plant-fault kill@device 3@RunForward@7"
  int losses = 0;        ///< that the launcher has seen
  double seconds = 0.0;  ///< from the last loss to the next step that is complete, or the job's end
  int repeated = 0;      ///< steps that had been complete before
  std::string problem;   ///< empty: the job ended as one that loses no process
  std::string transcript;
};

/// What a job that loses no process leaves: losses of all steps and final parameters.
struct Undisturbed {
  std::vector<double> losses;
  std::string weights;  ///< the bytes of the file
};
Undisturbed RunUndisturbed();

KillResult RunKill(const KillTrial& trial, const Undisturbed& expected);

/// A table in Markdown with one line per phase, with and without mirrors: trials, how many were as they
/// must be, losses, times, repeated steps; the trials that kill process 0, and their times.
std::string TableOf(const std::vector<KillResult>& results);

/// A result as one line of a file, and back; nullopt for a line that was cut short.
std::string ToLine(const KillResult& result);
std::optional<KillResult> FromLine(const std::string& line);

}  // namespace troupe::testing
