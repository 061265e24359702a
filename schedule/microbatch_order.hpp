// Orders of the microbatches of a step. A step's gradient is a sum over its microbatches, so any
// order trains the same; orders differ in how long stages with unequal microbatches wait for each other.
//
//   OrderByIntervals   Algorithm 2 of DistTrain (arXiv:2408.04275): fills the waits of the first stage of
//                      a chain
//   SearchOrder        swaps microbatches while the makespan of the round does not grow; starts from
//                      given orders
//   BestOrder          one after the other, for one graph whose stages run the same microbatches
//
// All of it is integer arithmetic with a fixed number of evaluations: every process computes the same
// order, and no clock bounds it.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/round_evaluator.hpp"

namespace troupe {

/// The evaluations of a search. With 4 stages and 32 microbatches they take a few milliseconds;
/// twice as many save another 0.5 % of an iteration.
inline constexpr std::int64_t kSearchEvaluations = 1000;

/// Returns the microbatch at each place, for stages in a chain, with Algorithm 2. `times` by stage
/// along the chain and by microbatch. The published text leaves open how p - 1 microbatches with a
/// given total time are picked: here one after the other, each the nearest to its share of what is
/// left. Ties go to the lower microbatch.
///   cost     O(l (l + p)) for p stages and l microbatches
std::vector<int> OrderByIntervals(const PassTimes& times);

/// The times of one stage for blocks of samples. The places of a microbatch are divided among
/// columns, and a block fills a column of one microbatch. Stages may take different columns: with two
/// replicas of an encoder and one of the language model, each encoder takes one of two columns and the
/// language model both.
struct StageBlocks {
  std::vector<int> columns;  ///< that the stage takes
  /// A pass takes as long as its slowest block, not the sum of all: rows are padded to the longest.
  bool padded = false;
  std::vector<std::vector<std::int64_t>> forward_ns;   ///< by column of the stage, by block
  std::vector<std::vector<std::int64_t>> backward_ns;  ///< by column of the stage, by block
};

/// By column, the block at each microbatch.
using Arrangement = std::vector<std::vector<int>>;

/// Returns the times of the passes with that arrangement, by stage and microbatch.
PassTimes TimesOf(const std::vector<StageBlocks>& stages, const Arrangement& arrangement);

/// Takes the best of the arrangements in `starts`, the first of equal ones, and swaps blocks of a column,
/// or of all columns, until `evaluations` are used up. Returns an arrangement that is no slower than any
/// start. `stages` by stage of the evaluator's graph. The swaps depend on nothing but the sizes.
Arrangement SearchOrder(RoundEvaluator& evaluator, const std::vector<StageBlocks>& stages,
                        const std::vector<Arrangement>& starts, std::int64_t evaluations);

/// Returns the microbatch at each place for stages that all run the same microbatches: the better of the
/// given order and Algorithm 2 on the stages by their distance to the sink, improved by SearchOrder.
/// `times` by stage of the evaluator's graph, which is `graph`, and by microbatch.
std::vector<int> BestOrder(const StageGraph& graph, RoundEvaluator& evaluator,
                           const PassTimes& times, std::int64_t evaluations = kSearchEvaluations);

/// Returns the times of a chain that resembles the graph: its stages are those of one distance to the
/// sink, and a pass takes the longest of theirs.
PassTimes FoldedTimes(const StageGraph& graph, const PassTimes& times);

}  // namespace troupe
