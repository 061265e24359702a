// Which samples one unit of work of one replica holds: the rule that every source of inputs
// follows.
#pragma once

#include <cstdint>
#include <vector>

#include "configs/config.hpp"
#include "layout/route.hpp"

namespace troupe {

/// The edge on which `module` is a colocated encoder, null when it is none.
const EdgeConfig* ColocatedEdge(const Config& config, const ModuleConfig& module);

/// What of a module's state leaves its ranks between phases: what it says if it is a colocated
/// encoder, else nothing.
Offload OffloadOf(const Config& config, const ModuleConfig& module);

/// Units of `microbatches_per_unit` microbatches that cover `microbatches` of them; the last may be
/// shorter. 0 microbatches per unit means one unit for the whole round.
inline std::int64_t UnitsIn(std::int64_t microbatches, std::int64_t microbatches_per_unit) {
  if (microbatches_per_unit == 0) return microbatches == 0 ? 0 : 1;
  return (microbatches + microbatches_per_unit - 1) / microbatches_per_unit;
}

/// Units of `module` in a round of `microbatches`.
std::int64_t NumUnits(const Config& config, const ModuleConfig& module, std::int64_t microbatches);

/// Sample numbers of unit `unit` of a round of `microbatches`, in row order. For most modules a
/// unit is a microbatch of N = samples_per_microbatch samples, and the numbers are places in it,
/// [0, N). For a colocated encoder it is a window, and sample n of its m-th microbatch has the
/// number m * N + n. `first_microbatch` of the unit is counted from the round's start.
struct UnitSamples {
  std::int64_t first_microbatch = 0;
  std::vector<Interval> samples;
};
UnitSamples SamplesOfUnit(const Config& config, const ModuleConfig& module, int dp,
                          std::int64_t microbatches, std::int64_t unit);

/// The most samples that a replica of `module` holds of one unit of such a round.
std::int64_t MostSamplesOfUnit(const Config& config, const ModuleConfig& module,
                               std::int64_t microbatches);

}  // namespace troupe
