// The operations of the parts of a stage, for counts of FLOPs and for times.
#pragma once

#include <vector>

#include "configs/config.hpp"
#include "kinds/work.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {

/// Lists the operations of a forward of `part` for the work that `shape` says.
void ListWork(const Config& config, const StagePart& part, const StepShape& shape, WorkList& work);

/// Returns the work of so many samples of `module`: full ones, all of whose tokens have a label, and as
/// many items of the greatest length as MostItemsOfSample says.
StepShape FullSamples(const Config& config, const ModuleConfig& module, std::int64_t samples);

/// Returns the work of the largest replica of `module` in a microbatch, or in a window if it is a
/// colocated encoder, if all samples are full.
StepShape MostWorkOfUnit(const Config& config, const ModuleConfig& module);

/// Returns the samples as one shape for each length: they differ in nothing else that is not a sum.
std::vector<StepShape> ByLength(const std::vector<StepShape>& samples);
/// Adds the samples of `more` to `sum`, which are as long as the longest of both.
void AddSamples(const StepShape& more, StepShape& sum);

}  // namespace troupe
