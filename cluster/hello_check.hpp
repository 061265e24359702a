// Whether the processes that have come fit together. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/join.hpp"

namespace troupe {

/// A Hello and where it came from ("10.0.0.3").
struct Claim {
  Hello hello;
  std::string from;
};

/// What does not fit, as one sentence, or nothing. `first` is process 0's own Hello, the others are
/// compared with it: number of processes, numbers taken twice, build, configuration (by key). Not
/// all need to be here.
std::optional<JoinProblem> FindMismatch(const Hello& first, const std::vector<Claim>& claims);

/// "run.steps is 200, n0 has 100; data.seed is not set, n0 has 7", at most 8 keys, then "and 5
/// more". Empty when both have the same keys with the same values.
std::string DescribeDifferences(const std::string& config, const std::string& first_config,
                                const std::string& first_name);

}  // namespace troupe
