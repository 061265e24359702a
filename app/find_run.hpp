// Finds a run directory by a short name, and keeps the link to the newest one.
#pragma once

#include <string>

namespace troupe {

/// Returns the run directory that `text` names: a path; the target of a link (runs/latest); a name
/// in runs/ ("latest"); or NAME for the newest runs/NAME-TIME. Returns `text` unchanged if there is
/// none: opening it reports the error.
std::string FindRun(const std::string& text);

/// Makes DIR/latest a link to `run`, which is in DIR, atomically. Does nothing if DIR/latest is not
/// a link, or the file system has no links.
void LinkLatest(const std::string& run);

/// Called when `run` is removed: points DIR/latest, if it is a link to `run`, to the newest run
/// that is left, or removes it.
void UnlinkLatest(const std::string& run);

}  // namespace troupe
