// Simulates a step under the stage rule with the durations of its own passes, to measure how well
// the simulation fits this machine.
#pragma once

#include <cstdint>
#include <string>

#include "trace/analyze/order.hpp"

namespace troupe {

struct Replay {
  std::int64_t measured_ns = 0;  ///< from the beginning of the first pass to the end of the last
  /// Simulated; each pass takes as long as on its slowest rank and replica.
  std::int64_t passes_ns = 0;
  /// Simulated; each pass lasts from the stage's decision to its answer, including messages and the
  /// wait for a core.
  std::int64_t commands_ns = 0;
  int orders = 0;             ///< orders that were run
  int other_orders = 0;       ///< of these, orders that differ in the simulation of commands_ns
  std::string not_simulated;  ///< the reason if there is no simulation; else empty
};

/// `comparison` is that of the same round: a round without a prediction cannot be simulated.
Replay ReplayStep(const TraceIndex& index, std::int64_t round, const RuleInputs& rule,
                  const OrderComparison& comparison);

/// "the step's passes took 98.3 ms; simulated 95.1 ms (-3.2%) with their own durations, ...".
std::string Format(const Replay& replay);

}  // namespace troupe
