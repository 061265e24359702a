// The units of work of a module, and the samples of a unit that one replica holds. Every source of
// inputs follows this rule.
#pragma once

#include <cstdint>
#include <vector>

#include "configs/config.hpp"
#include "layout/route.hpp"

namespace troupe {

/// Returns the edge on which `module` is a colocated encoder; null if it is not one.
const EdgeConfig* ColocatedEdge(const Config& config, const ModuleConfig& module);

/// Returns the part of a module's state that leaves its ranks between phases: as configured for a
/// colocated encoder, else none.
Offload OffloadOf(const Config& config, const ModuleConfig& module);

/// The units of one module in one round. The last one may be shorter.
struct Units {
  std::int64_t count = 0;
  std::int64_t microbatches_each = 1;
};

/// The length of a module's units: a microbatch, or a window of microbatches for a colocated
/// encoder. A window may be the whole round, so units are resolved for each round.
class UnitLength {
 public:
  UnitLength() = default;  ///< a microbatch
  /// `window`: number of microbatches; 0: the whole round.
  explicit UnitLength(std::int64_t window) : window_(window) {}
  UnitLength(const Config& config, const ModuleConfig& module);

  Units In(std::int64_t microbatches) const;
  std::int64_t window() const { return window_; }
  /// Returns whether texts call a unit a window. A window of a single microbatch is called a
  /// microbatch.
  bool is_window() const { return window_ != 1; }

 private:
  std::int64_t window_ = 1;  ///< as ScheduleConfig::window
};

/// Sample numbers of unit `unit` of a round of `microbatches`, in row order. For most modules a
/// unit is a microbatch of N = samples_per_microbatch samples, and the numbers are places in it,
/// [0, N). In a window, sample n of the m-th microbatch has the number m * N + n.
/// `first_microbatch` of the unit is counted from the round's start.
struct UnitSamples {
  std::int64_t first_microbatch = 0;
  std::vector<Interval> samples;
};
UnitSamples SamplesOfUnit(const Config& config, const ModuleConfig& module, int dp,
                          std::int64_t microbatches, std::int64_t unit);

/// Returns the most samples that a replica of `module` holds of one unit of such a round.
std::int64_t MostSamplesOfUnit(const Config& config, const ModuleConfig& module,
                               std::int64_t microbatches);

/// Returns how many items of an encoder estimates count for each sample of a batch: one, or if
/// samples are packs as many of the longest as fit in a pack, rounded up if there are shorter ones. 1
/// for a module that reads text.
std::int64_t MostItemsOfSample(const Config& config, const ModuleConfig& module);

/// Returns whether a replica computes as many rows for each sample of a microbatch as for its longest: a
/// module that reads text, unless samples are packed or cut.
bool PadsRows(const Config& config, const ModuleConfig& module);

}  // namespace troupe
