// The page that WritePage fills in.
#pragma once

namespace troupe {

/// HTML, styles and script up to where the data goes, and behind it. The data is one JSON object
/// (page.cpp says what is in it) without '<'.
extern const char* const kPageBeforeData;
extern const char* const kPageAfterData;

}  // namespace troupe
