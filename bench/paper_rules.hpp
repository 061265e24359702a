// The rules that choose what the paper does not print.
#pragma once

#include <map>
#include <vector>

#include "bench/paper_rows.hpp"
#include "bench/paper_time.hpp"

namespace troupe::bench {

/// Sets stack, split and regime of each job that lacks them, by its printed columns.
void ChooseSettings(const PaperModel& model, std::vector<PaperJob>& row);

/// What the modes of a workload of A5 are predicted to take.
struct ContestResult {
  std::string id;
  std::map<Mode, PaperJob> jobs = {};       ///< those that are known
  std::map<Mode, double> predicted_s = {};  ///< of these
  std::map<Mode, double> predicted_gb = {};
  std::string winner = {};  ///< the mode with the fewest device seconds; "H/C": they are one
  std::string best = {};    ///< as printed
};

/// Finds each workload's H and C among the rows, and its NC or the fastest layout for it. Without H the
/// result has no jobs.
std::vector<ContestResult> Decide(const PaperModel& model, const PaperTables& tables);

}  // namespace troupe::bench
