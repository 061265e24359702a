// Writes timelines for Perfetto and as an HTML page.
#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "trace/export/timeline.hpp"

namespace troupe {

/// Native TrackEvent protobuf: nested tracks node, module, stage, rank; flows; counters.
void WritePerfetto(std::ostream& out, const TraceIndex& index, const Timeline& timeline);

/// A timeline and the table below it as the page draws them, one JSON object. `bubble_json` is
/// ToJson of StageTable.
std::string PageTimelineJson(const TraceIndex& index, const Timeline& timeline,
                             const std::string& bubble_json);

/// The data of one run on the page.
struct PageRun {
  std::string name;
  std::string timeline_json;                 ///< PageTimelineJson; empty: no timeline
  std::string without_timeline;              ///< the reason if there is no timeline, for people
  std::string series_json = "{}";            ///< {"loss": [[step, value], ...], ...}
  std::map<std::string, std::string> facts;  ///< compared with other runs' facts of the same name
};

enum class PageKind {
  kTimeline,  ///< the timeline first
  kReport,    ///< the curves first
};

/// One self-contained HTML file: timelines with arrows, tables, curves of training.
void WritePage(std::ostream& out, PageKind kind, const std::vector<PageRun>& runs);

}  // namespace troupe
