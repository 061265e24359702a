// The makespan of a round, and nothing else: Simulate (schedule/simulate.hpp) without its record of
// passes. It applies the same rule to the same events, and takes a few microseconds, so that a search
// can try thousands of orders of microbatches.
//
// A search should let messages take a nanosecond. In a run they arrive after the decisions of their instant,
// and an order that is good only if they arrive before is not good.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "layout/stage_graph.hpp"
#include "schedule/schedule.hpp"
#include "schedule/stage_rule.hpp"

namespace troupe {

/// The durations of all passes of a round in nanoseconds (or another unit), 0 or more.
struct PassTimes {
  std::vector<std::vector<std::int64_t>> forward_ns;   ///< by stage of the graph, by unit
  std::vector<std::vector<std::int64_t>> backward_ns;  ///< by stage of the graph, by unit
};

class RoundEvaluator {
 public:
  static constexpr std::int64_t kNoBound = std::numeric_limits<std::int64_t>::max();

  /// For rounds of `microbatches` through `graph`. Throws std::invalid_argument: a wrong number of
  /// rules or link times; stages that share devices, links with different times, or a rule other than
  /// 1f1b and gpipe, which it does not simulate.
  RoundEvaluator(const StageGraph& graph, const Schedule& schedule, std::int64_t microbatches);

  std::int64_t microbatches() const { return microbatches_; }
  /// The passes of a round, a measure of the time that an evaluation takes.
  std::int64_t num_passes() const {
    return 2 * microbatches_ * static_cast<std::int64_t>(nodes_.size());
  }

  /// Returns the makespan of Simulate with these durations, or kNoBound if the round cannot finish.
  /// An evaluation that finds that the makespan is `bound` or more may end early: it then returns a
  /// value of at least `bound`. `times` must have the stages and microbatches of the constructor.
  std::int64_t Makespan(const PassTimes& times, std::int64_t bound = kNoBound);

 private:
  struct Node {
    StageRule rule;
    std::vector<int> in;   ///< links
    std::vector<int> out;  ///< links
    bool runs_backward = true;
    StageCounters counters = {};
    std::int64_t left_ns = 0;  ///< of its passes that have not started
  };
  struct Link {
    int from = 0;               ///< stage
    int to = 0;                 ///< stage
    std::int64_t arrived = 0;   ///< activations
    std::int64_t answered = 0;  ///< gradients
  };
  /// A tensor in transit.
  struct Transit {
    std::int64_t at_ns = 0;
    int link = 0;
    bool answer = false;  ///< a gradient
  };

  void Reset(const PassTimes& times);
  void Touch(int stage);
  /// Lets every affected stage begin its next pass; false: the round takes `bound` or more.
  bool Decide(const PassTimes& times, std::int64_t now_ns, std::int64_t bound);
  void Finish(int stage, std::int64_t now_ns);
  void Send(int link, bool answer, std::int64_t now_ns);
  void Arrive(int link);
  void Answer(int link);

  std::int64_t microbatches_;
  std::int64_t link_ns_ = 0;
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<std::int64_t> ends_ns_;  ///< by stage: of the pass that runs; kNoBound: none
  std::vector<PassKind> running_;      ///< by stage
  std::vector<Transit> transits_;      ///< in the order in which they were sent, so also of arrival
  std::size_t num_arrived_ = 0;        ///< of transits_
  std::vector<int> touched_;           ///< stages affected by events since their last decision
  std::vector<char> is_touched_;
};

}  // namespace troupe
