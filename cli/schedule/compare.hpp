// One row of `troupe bench schedules`: the cost of a schedule, simulated and run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/schedule/stage_times.hpp"

namespace troupe {

/// A median with the interval that holds the true one in at least 95 of 100 cases.
struct Interval95 {
  struct Bounds {
    double low = 0.0;
    double high = 0.0;
  };
  double median = 0.0;
  std::optional<Bounds> bounds;  ///< nothing if there are too few samples
};
/// All n samples are on one side of the true median in 2 of 2^n cases: with fewer samples than this
/// in more than 5 of 100.
inline constexpr int kFewestForInterval = 6;
/// Uses the order of the samples only, so it holds for every distribution. With fewer than 9
/// samples the interval spans all of them. Throws std::invalid_argument if there are none.
Interval95 MedianOf(std::vector<double> samples);

/// Idle share of a step by the textbook formula, for a chain of `devices` equally slow ones:
/// (p-1)/m of the work for 1f1b and gpipe, a third of it for zb-h1, divided by the chunks for
/// interleaved. Nothing for a schedule from a file.
std::optional<double> IdealBubble(const Candidate& candidate);

/// Share of the time of all ranks of the step in which they compute nothing (docs/schedules.md).
/// Stages are weighted by their ranks.
double BubbleOf(const JobPlan& plan, const Simulation& simulation);

struct SimulatedRow {
  double step_ms = 0.0;
  double bubble = 0.0;                         ///< BubbleOf
  std::vector<std::int64_t> peak_activations;  ///< by stage
};
/// Throws LayoutError if the schedule cannot finish.
SimulatedRow SimulateRow(const Candidate& candidate, const StageTimes& times);

/// The cost as the actors measure it in virtual time.
struct VirtualRow {
  double step_ms = 0.0;  ///< of the last of `steps`
  std::uint64_t messages = 0;
  std::size_t actors = 0;
  double wall_seconds = 0.0;
};
/// Runs the job's stages and messages in virtual time, with small tensors; the work of stages,
/// inline encoders included, is only in `times`. Throws std::runtime_error with the cause if the
/// job fails.
VirtualRow RunVirtually(const Candidate& candidate, const StageTimes& times, std::int64_t steps);

}  // namespace troupe
