// The search over layouts: which option of every module gives the shortest step within the ranks and
// the memory that there are. Exact, by branch and bound: nothing is left out that could be best.
//
// The sink's option (the language model's layout, its schedule, its microbatches) is chosen first. The
// other modules have options that depend on it. A step takes
//
//   fixed + first + (units - 1) * period + after
//
// where `after` is that of the module that takes longest, `fixed` and, if the modules are a chain, `first` are sums over all modules, and `period` is that
// of the slowest module: a pipeline emits a unit in the time of its slowest stage. Modules that feed the
// sink side by side count with the slowest one's `first`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace troupe {

/// One way to run a module.
struct RunOption {
  int ranks = 0;              ///< its own ones; 0 if it shares those of the sink
  double memory_bytes = 0.0;  ///< what it needs on each rank of the sink, if it runs there
  double first_s = 0.0;       ///< from the beginning of the first unit to its end, all passes
  double period_s = 0.0;      ///< between two units
  double fixed_s = 0.0;       ///< once in a step
  double after_s = 0.0;       ///< behind the last unit, while other modules do the same
};

/// One way to run the sink.
struct SinkOption {
  RunOption own = {};
  std::int64_t units = 1;   ///< microbatches of a step
  double free_bytes = 0.0;  ///< memory that is left on each rank
  std::size_t group = 0;    ///< sinks of a group share the options of the other modules
};

struct ChoiceProblem {
  int max_ranks = 0;
  bool chain = false;  ///< the first unit runs through the modules one after the other
  /// The options of the sink are in sets. By set: a time that no step with one of them falls below.
  std::vector<double> sets_s;
  /// Returns the options of a set. Called once for each set that is looked at: those that are too slow are
  /// not.
  std::function<std::vector<SinkOption>(std::size_t set)> sinks_of;
  /// Returns the options of every module but the sink, by module. Called once for each group that is
  /// looked at: sinks that are too slow alone are not.
  std::function<std::vector<std::vector<RunOption>>(std::size_t group)> options_of;
};

/// A choice for every module.
struct Choice {
  std::size_t set = 0;
  std::size_t sink = 0;                   ///< index in its set
  std::size_t group = 0;                  ///< of the sink
  std::vector<std::size_t> options = {};  ///< by module, indexes in its list
  int ranks = 0;
  double step_s = 0.0;
};

/// The time of a step with these options.
double StepTime(const ChoiceProblem& problem, const SinkOption& sink,
                std::span<const RunOption* const> options);

/// Returns for every sink that allows a step of at most `within` times the best one the shortest step,
/// best first. Of choices of one sink whose steps take at most `equal` times as long as that, the
/// one with the fewest ranks is returned, and of those the fastest. Empty if nothing fits.
std::vector<Choice> BestChoices(const ChoiceProblem& problem, double within = 1.0,
                                double equal = 1.0);

/// Returns the choice with the fewest ranks among all whose steps take at most `equal` times as long
/// as the best one, and of those the fastest. Throws std::invalid_argument if nothing fits.
Choice FewestRanks(const ChoiceProblem& problem, double equal);

}  // namespace troupe
