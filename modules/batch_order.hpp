// The place of each sample in its step, as data.order says, remembered for the latest steps: every unit of a
// step asks for it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "modules/input_source.hpp"
#include "plan/step_order.hpp"

namespace troupe {

/// How uneven the loads of replicas are (StepOrder::MaxOverMean).
struct StepBalance {
  double drawn = 1.0;   ///< with samples in the order in which they are drawn
  double placed = 1.0;  ///< in the places that they get
};

/// A function of the samples of a step and of the layouts alone, so every process computes the same, and a
/// run that resumes in another layout reads the same samples. Thread-safe.
class BatchOrder {
 public:
  /// Throws LayoutError as JobPlan does, if data.order is "balanced".
  explicit BatchOrder(const Config& config);

  /// Returns which of the round's samples, counted in the order in which they are drawn, is at place k.
  /// `times` returns the times of sample i on the stages of step_order(). It is called for every sample
  /// of a step once, if the order depends on them. Evaluations keep the order of their list.
  std::int64_t SampleAt(const Round& round, std::int64_t k,
                        const std::function<SampleTimes(std::int64_t i)>& times) const;

  /// Returns how even the order makes the round's loads; `times` as above. None unless data.order is
  /// "balanced" and in evaluations.
  std::optional<StepBalance> BalanceOf(
      const Round& round, const std::function<SampleTimes(std::int64_t i)>& times) const;

  /// Must not be called unless data.order is "balanced".
  const StepOrder& step_order() const { return *step_order_; }

 private:
  struct Placed {
    std::vector<std::int64_t> order;
    StepBalance balance;
  };
  using Order = std::shared_ptr<const Placed>;

  /// Computes the order of a round unless it is known.
  Order OrderOf(const Round& round, const std::function<SampleTimes(std::int64_t i)>& times) const;

  std::unique_ptr<const StepOrder> step_order_;  ///< null: samples stay where they are
  mutable std::mutex mutex_;
  mutable std::map<std::pair<std::int64_t, std::int64_t>, Order>
      recent_;  ///< by place, microbatches
};

}  // namespace troupe
