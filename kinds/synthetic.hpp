// A module that computes nothing and takes a stated time, for schedules and benchmarks.
#pragma once

#include "kinds/kind.hpp"

namespace troupe {

extern const ModuleKind kSynthetic;

struct SyntheticConfig : ModelOf<SyntheticConfig, kSynthetic> {
  double forward_ms = 1.0;  ///< per stage and microbatch
  double backward_ms = 2.0;
  double weight_share = 0.5;  ///< the weights' part of backward_ms in a split backward
  double time_sigma = 0.0;    ///< how much the times of samples differ: of the logarithm
  std::int64_t hidden = 8;    ///< width of a boundary row, float64
  std::int64_t rows_per_sample = 1;
  std::int64_t experts = 0;  ///< with them, replicas run in lock step as the layout says

  std::int64_t rows_per_item() const override { return rows_per_sample; }
  /// If samples take different times, each stage has to know its samples.
  bool ReadsData(bool first_stage, bool, bool source) const override {
    return (first_stage && source) || time_sigma > 0.0;
  }
  std::int64_t row_width() const override { return hidden; }
  /// As many as there are ranks: a part without rows takes its stated time, too.
  std::int64_t most_context_parts() const override { return 1 << 16; }
  std::int64_t num_experts() const override { return experts; }
  bool takes_rows() const override { return true; }
  std::optional<StatedTimes> stated_times() const override {
    return StatedTimes{forward_ms, backward_ms, weight_share, time_sigma};
  }
  friend bool operator==(const SyntheticConfig&, const SyntheticConfig&) = default;
};

}  // namespace troupe
