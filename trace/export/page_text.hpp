// The constant parts of the page, in the order of writing.
#pragma once

namespace troupe {

extern const char* const kPageBeforeData;  ///< up to the JSON
extern const char* const kPageTimeline;    ///< the script: data, timeline, mouse
extern const char* const kPageTables;      ///< facts, legend, table of stages
extern const char* const kPageCharts;      ///< curves of training, and the end of the page

}  // namespace troupe
