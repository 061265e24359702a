// An HTML page about one run or several: training curves, and the timeline of a step of each.
#pragma once

#include <string>
#include <vector>

#include "app/opened_trace.hpp"
#include "trace/export/exporters.hpp"

namespace troupe {

inline constexpr const char* kReportFile = "report.html";

/// Returns the run's curves and facts, without a timeline.
PageRun CurvesOf(const std::string& run_directory);

/// Returns the timeline of some steps of a run with its table, as JSON.
std::string TimelineJson(const OpenedTrace& run, const std::vector<StepSpan>& spans,
                         const Timeline& timeline);

/// Returns a page with curves, facts, and the timeline of the last step in the trace, or the reason
/// why the trace cannot be read. Throws std::invalid_argument for a path that is not a run
/// directory.
std::string ReportPage(const std::vector<std::string>& run_directories);

/// Replaces the file at `path` by `content`. Throws std::runtime_error with path and reason, also
/// if `path` is not a regular file, which it leaves alone.
void WritePageFile(const std::string& path, const std::string& content);

}  // namespace troupe
