// Checks a table of actions for deadlocks, missing actions and too many kept activations.
//
// Costs are units: F 1, I 1, W 1, B 2. Sending, receiving and sharding take no time. Actions of one
// cell run one after the other. A send never waits; a receive waits for its send.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/action_table.hpp"

namespace troupe {

/// Properties of a table that can run.
struct TableFacts {
  int ranks = 0;
  int stages = 0;
  std::int64_t microbatches = 0;
  std::int64_t makespan = 0;                   ///< in units
  double bubble = 0.0;                         ///< idle share of all ranks' time
  std::vector<std::int64_t> peak_activations;  ///< by rank: microbatches kept, summed over stages
};

struct LintResult {
  std::string problem;  ///< one line, "row 2 column 14: 3B5 before 3F5"; empty: it can run
  TableFacts facts;     ///< if it can run
};

/// `max_activations` per rank; 0: no limit. Takes time linear in the number of actions.
LintResult Lint(const ActionTable& table, std::int64_t max_activations = 0);

/// Moves every action to the first column after all its needs, one slot for each pass. If there is
/// a problem, returns it and leaves the table unchanged.
std::string AlignColumns(ActionTable& table);

}  // namespace troupe
