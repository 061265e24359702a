// How the modules at both ends of an edge cut its rows.
#pragma once

#include "configs/config.hpp"
#include "layout/row_table.hpp"

namespace troupe {

RowCut SourceCut(const Config& config, const EdgeConfig& edge);
/// A module that cuts its rows over tp gets the rows of each rank's own tokens, unless its projector
/// needs all rows on all ranks.
RowCut DestinationCut(const Config& config, const EdgeConfig& edge);
/// Whether an end cuts the rows, so that their tables have lengths and runs.
bool CutsRows(const Config& config, const EdgeConfig& edge);

}  // namespace troupe
