// Checks that the processes that have joined fit together. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/join.hpp"

namespace troupe {

/// A Hello and the address it came from ("10.0.0.3").
struct Claim {
  Hello hello;
  std::string from;
};

/// Returns the first mismatch as one sentence, or nothing. `first` is process 0's own Hello,
/// against which the others are checked: number of processes, duplicate numbers, build,
/// configuration (by key). `claims` may be incomplete.
std::optional<JoinProblem> FindMismatch(const Hello& first, std::vector<Claim> claims);

/// Of processes that go on with another run than process 0, which is `first`, has begun.
JoinProblem OtherRun(const Hello& first, const std::vector<Claim>& claims);

/// The processes after the first that have not joined, ascending.
std::vector<ProcessId> AbsentFrom(const std::vector<Claim>& claims, int num_processes);

/// "run.steps is 200, n0 has 100; data.seed is not set, n0 has 7", at most 8 keys, then "and 5
/// more". Empty if both have the same keys and values.
std::string DescribeDifferences(const std::string& config, const std::string& first_config,
                                const std::string& first_name);

}  // namespace troupe
