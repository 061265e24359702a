// The parts of the page that do not change, in the order in which they are written.
#pragma once

namespace troupe {

extern const char* const kPageBeforeData;  ///< up to the JSON
extern const char* const kPageTimeline;    ///< the script: data, timeline, mouse
extern const char* const kPageTables;      ///< facts, legend, table of stages
extern const char* const kPageCharts;      ///< curves of training, and the end of the page

}  // namespace troupe
