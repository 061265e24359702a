// A run directory by the shorter names that people give it, and the link to the newest one.
#pragma once

#include <string>

namespace troupe {

/// The run directory that `text` means: itself; what the link is to that it is (runs/latest);
/// "latest" or another name in runs/; for NAME the newest runs/NAME-TIME. As it is where it means
/// none: whoever opens it says what was expected.
std::string FindRun(const std::string& text);

/// Makes DIR/latest a link to `run`, which lies in DIR, in one step. What is there and is no link
/// stays, and so does everything where links cannot be made.
void LinkLatest(const std::string& run);

/// Of a `run` that is removed: lets DIR/latest, if it leads there, lead to the newest run that is
/// left, or removes it.
void UnlinkLatest(const std::string& run);

}  // namespace troupe
