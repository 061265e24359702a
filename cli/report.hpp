// One HTML page about one run, or several: curves of training, and the timeline of a step of each.
#pragma once

#include <string>
#include <vector>

#include "cli/trace/trace.hpp"
#include "trace/export/exporters.hpp"

namespace troupe {

inline constexpr const char* kReportFile = "report.html";

/// "shapes-20260101-120000" of "runs/shapes-20260101-120000/".
std::string RunName(const std::string& run_directory);

/// The run's curves and facts; no timeline.
PageRun CurvesOf(const std::string& run_directory);

/// The timeline of a stretch of a run with its table, as JSON.
std::string TimelineJson(const OpenedTrace& run, const std::vector<StepSpan>& spans,
                         const Timeline& timeline);

/// Curves, facts, and the timeline of the last step that the trace holds. Where the trace cannot be
/// read the page says why. Throws std::invalid_argument for what is not a run directory.
std::string ReportPage(const std::vector<std::string>& run_directories);

/// Puts `content` in the place of `path`. Throws std::runtime_error naming path and reason, and
/// leaves what is not a regular file alone.
void WritePageFile(const std::string& path, const std::string& content);

}  // namespace troupe
