// Samples that a file states, where the data themselves are not there yet.
#pragma once

#include <string>
#include <vector>

#include "configs/config.hpp"
#include "plan/cost/unit_work.hpp"

namespace troupe {

/// Reads a file of CSV: the first line names the columns, "tokens" (text and rows of items together),
/// optionally "labels" (else as many), and encoders by name (items of each; else one). Each other line is
/// a sample, whose tokens have room for the rows of its items. Throws std::runtime_error, one line that names
/// file, line and fault.
std::vector<StepShape> ReadSampleList(const std::string& path, const Config& config);

/// Returns so many steps of the configuration's global batch: samples of the list in its order. If they need
/// more, they have each sample equally often, in an order that was drawn: with that of the list, one
/// replica could get the same sample again and again.
std::vector<PlacedSamples> StepsOfList(const std::vector<StepShape>& samples, const Config& config,
                                       int steps);

}  // namespace troupe
