// Timelines as files for Perfetto, for whatever reads Chrome's JSON, and as a page of their own.
#pragma once

#include <iosfwd>
#include <string>

#include "trace/export/timeline.hpp"

namespace troupe {

/// Native TrackEvent protobuf: nested tracks node, module, stage, rank; flows; counters.
void WritePerfetto(std::ostream& out, const TraceIndex& index, const Timeline& timeline);

/// JSON of Chrome's trace events, object form. Processes are the timeline's innermost groups.
void WriteChrome(std::ostream& out, const TraceIndex& index, const Timeline& timeline);

/// What the page draws besides the timeline.
struct PageExtras {
  std::string bubble_json;  ///< ToJson of a table with columns of the summary
  std::string losses_json;  ///< [[step, loss], ...]
};

/// One HTML file without a link to anywhere: timeline by stage, arrows, tables, loss curve.
void WritePage(std::ostream& out, const TraceIndex& index, const Timeline& timeline,
               const PageExtras& extras);

}  // namespace troupe
