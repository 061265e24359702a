// Faults at random moments of training, many times over, and a table of how each was reported.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::testing {

/// What a fault is and how a job must answer it.
struct FaultKind {
  std::string name;     ///< "killed", as the table calls it
  double limit_s = 0;   ///< from the fault to the last process that names it
  std::string planted;  ///< as --plant-fault takes it up to the count; empty: done to a process
  std::uint64_t messages_per_step = 0;  ///< of those that are counted
};

/// All kinds, in the order of the table.
const std::vector<FaultKind>& FaultKinds();

struct Trial {
  std::size_t kind = 0;    ///< into FaultKinds()
  std::uint64_t seed = 0;  ///< the moment and the victim follow from it
};

/// What can be wrong about how one process answers a fault.
enum class Flaw { kHangs, kSilent, kMisnamed, kLate, kExitCode };
inline constexpr int kNumFlaws = 5;

struct TrialResult {
  Trial trial;
  std::string what;     ///< "killed n2 0.713 s after step 1"
  double seconds = 0;   ///< until the last process that must name it did; less if one did not
  std::string problem;  ///< empty: named by all, in time, with the right exit code
  std::array<bool, kNumFlaws> flaws{};  ///< of any process
  std::string transcript;
};

/// Four hosts, one fault.
TrialResult RunTrial(const Trial& trial);

/// One line per kind: trials, how many were as they must be, how many had which flaw, the worst
/// time of those processes that named it.
std::string TableOf(const std::vector<TrialResult>& results);

}  // namespace troupe::testing
