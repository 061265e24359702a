// The page that WritePage fills in.
#pragma once

namespace troupe {

/// HTML, styles and script up to where the data goes; behind it the timeline, then the facts,
/// tables and curve around it, to the end. The data is one JSON object (page.cpp says what is in
/// it) without '<'.
extern const char* const kPageBeforeData;
extern const char* const kPageAfterData;
extern const char* const kPageTables;

}  // namespace troupe
