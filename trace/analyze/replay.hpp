// A step as the stage rule would run it with the durations that its own passes had: how well the
// simulation knows this machine.
#pragma once

#include <cstdint>
#include <string>

#include "trace/analyze/order.hpp"

namespace troupe {

struct Replay {
  std::int64_t measured_ns = 0;  ///< from the beginning of the first pass to the end of the last
  /// Simulated, each pass as long as its slowest rank and replica took.
  std::int64_t passes_ns = 0;
  /// Simulated, each pass from the stage's decision to its answer: with the messages and the wait
  /// for a core that lie between them.
  std::int64_t commands_ns = 0;
  /// Of the orders that were run, how many that last simulation ran otherwise.
  int orders = 0;
  int other_orders = 0;
  std::string not_simulated;  ///< why there is no simulation; empty: there is one
};

/// `comparison` is that of the same round: what cannot be predicted cannot be simulated.
Replay ReplayStep(const TraceIndex& index, std::int64_t round, const RuleInputs& rule,
                  const OrderComparison& comparison);

/// "the step's passes took 98.3 ms; simulated 95.1 ms (-3.2%) with their own durations, ...".
std::string Format(const Replay& replay);

}  // namespace troupe
