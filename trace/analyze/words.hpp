// What happened, in words that all analyses share.
#pragma once

#include <cstdint>
#include <string>

#include "trace/analyze/chain.hpp"
#include "trace/analyze/steps.hpp"

namespace troupe {

/// Units as a schedule writes them: F3 is the fourth unit of its round. Units in a trace count from
/// the start of the run.
class UnitNumbers {
 public:
  explicit UnitNumbers(const TraceIndex& index);
  /// The unit counted from the first that its stage ran in the round; `unit` itself where the round
  /// is not known.
  std::int64_t InRound(std::int64_t unit, std::int64_t round, int stage) const;

 private:
  struct First {
    std::int64_t round;
    int stage;
    std::int64_t unit;
  };
  std::vector<First> firsts_;  ///< by round, then stage
};

/// "F of microbatch 3" (since the start of the run), "update".
std::string Describe(const PassRecord& pass);
/// "F of microbatch 3 of language.s0". The message that started it may be lost.
std::string DescribeWork(const TraceIndex& index, int work);
/// "F of microbatch 3 of language.s0" of a device; else "Activation of microbatch 3", "RoundBegin".
std::string DescribeHandling(const TraceIndex& index, int message);
/// "Activation over vision>language", "Gradient over language.s0>s1"; the type alone without a
/// link.
std::string DescribeEdge(const TraceIndex& index, int message);

/// The message that told the one who decides (a stage, a phase, an update) to start `work`: what
/// the device had been waiting for. -1: it is not in the trace.
int StartOf(const TraceIndex& index, const TraceWork& work);

}  // namespace troupe
