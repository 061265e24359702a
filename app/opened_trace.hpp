#pragma once

#include <string>

#include "trace/analyze/order.hpp"
#include "trace/analyze/steps.hpp"
#include "transport/failure.hpp"

namespace troupe {

/// The merged traces of a run with their indexes. Not movable: its parts point into each other.
struct OpenedTrace {
  /// Throws std::invalid_argument if `run_directory` is not a run directory, and std::runtime_error
  /// if its traces cannot be read.
  explicit OpenedTrace(const std::string& run_directory);
  OpenedTrace(const OpenedTrace&) = delete;
  OpenedTrace& operator=(const OpenedTrace&) = delete;

  std::string directory;
  RunTrace trace;
  TraceIndex index;
  Steps steps;
};

/// The inputs of the rule that the stages of a run follow; without credits if the run's
/// resolved.toml cannot be read.
RuleInputs RuleOfRun(const OpenedTrace& run);

/// The cause of a failed run as it was printed, and the actors that explain it. Empty if the run
/// did not fail or was killed. The kind of the failure is not kept.
Failure CauseOf(const std::string& run_directory);

}  // namespace troupe
