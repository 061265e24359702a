// What is wrong with a table of actions: where it would deadlock, what is missing, what it keeps.
//
// Costs are units: F 1, I 1, W 1, B 2; what is sent, received and sharded takes no time, actions of
// one cell run one after the other. A send never waits, a receive waits for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/action_table.hpp"

namespace troupe {

/// What a table that can run is.
struct TableFacts {
  int ranks = 0;
  int stages = 0;
  std::int64_t microbatches = 0;
  std::int64_t makespan = 0;                   ///< in units
  double bubble = 0.0;                         ///< share of all ranks' time in which nothing runs
  std::vector<std::int64_t> peak_activations;  ///< by rank: microbatches kept, summed over stages
};

struct LintResult {
  std::string problem;  ///< one line, "row 2 column 14: 3B5 before 3F5"; empty: it can run
  TableFacts facts;     ///< when it can run
};

/// `max_activations` per rank; 0 = any. Takes time in proportion to the number of actions.
LintResult Lint(const ActionTable& table, std::int64_t max_activations = 0);

/// Gives every action the first column behind all that it needs, one slot for each pass. Returns
/// the problem and leaves the table as it is where there is one.
std::string AlignColumns(ActionTable& table);

}  // namespace troupe
