// The times of the passes in a trace, and what the cost model says about them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plan/cost/fit.hpp"
#include "plan/cost/unit_work.hpp"
#include "plan/job_plan.hpp"
#include "trace/run_trace.hpp"

namespace troupe {

/// A pass of one replica, or its sum of gradients or update, on each of its ranks and each time that its
/// global batch was trained on.
struct MeasuredPass {
  int stage = 0;
  int dp = 0;
  WorkKind kind = WorkKind::kForward;
  std::int64_t batch = 0;
  std::int64_t unit = 0;       ///< counted from the round's first
  std::vector<double> core_s;  ///< on cores, or on a GPU; where that is not known as wall_s
  std::vector<double> wall_s;
};

/// Which global batch a round trained on; -1: do not count the round.
using BatchOfRound = std::function<std::int64_t(std::int64_t round)>;

/// Returns the work of all training rounds that count, those of one batch together.
std::vector<MeasuredPass> MeasuredPassesOf(const JobPlan& plan, const RunTrace& trace,
                                           const BatchOfRound& batch_of);

/// Returns the times from the first pass of each training round to that of the next, in seconds.
std::vector<double> StepsOf(const RunTrace& trace);

/// Returns the time that one in ten of `values` goes below: what work takes where nothing else disturbs
/// it. 0 without values.
double UndisturbedTime(std::vector<double> values);

/// Returns half of the range of the middle half of `values`, as a share of their median.
double SpreadOf(std::vector<double> values);

/// Returns what the cost model says about a forward, or a backward with its weights, of these samples.
/// `plan` outlives it.
std::function<double(const DeviceModel&)> TimeOfPass(const JobPlan& plan,
                                                     const PlacedSamples& samples,
                                                     const MeasuredPass& pass);

/// "forward of language.s0 tp 2, 8 samples"
std::string PassText(const JobPlan& plan, const MeasuredPass& pass);

}  // namespace troupe
