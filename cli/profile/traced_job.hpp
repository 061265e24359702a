// Runs a configuration in this process for a few steps, and reads the trace of it.
#pragma once

#include <memory>
#include <vector>

#include "cli/profile/measured_pass.hpp"
#include "data/row_source.hpp"

namespace troupe {

struct TracedJob {
  std::shared_ptr<const JobPlan> plan;
  std::vector<PlacedSamples> batches;  ///< the global batches that it trained on in turn
  std::vector<RunTrace> traces;        ///< one for each run
  std::vector<MeasuredPass> passes;    ///< of all rounds but the first on each batch
};

/// Returns round `number`, on global batch `batch` of the data.
Round RoundOn(const Config& config, std::int64_t number, std::int64_t batch);

/// Trains `rounds` steps on `batches` global batches in turn. Throws std::runtime_error with the cause if
/// the job fails.
TracedJob RunTraced(const std::shared_ptr<const JobPlan>& plan, int batches, int rounds);

/// Adds the times of the same passes of another run.
void AddTimes(const TracedJob& more, TracedJob& job);

}  // namespace troupe
