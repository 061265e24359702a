// Where the time of a step goes, for people: what the busiest ranks do with each millisecond.
#pragma once

#include <string>
#include <vector>

#include "plan/cost/job_cost.hpp"

namespace troupe {

/// Returns what all passes of a stage take in a step, on each of its ranks.
Breakdown PassesOf(const JobPlan& plan, const JobCost& cost, int stage);

/// A line of an account.
struct AccountLine {
  std::string what;  ///< "language: linears"
  double seconds = 0.0;
};

/// Returns the account of a step on the busiest ranks of the sink, with everything that runs on them: a line for
/// each module and kind of work, then waiting, then what follows the passes. The lines add up to the step.
std::vector<AccountLine> AccountOf(const JobPlan& plan, const JobCost& cost);

}  // namespace troupe
