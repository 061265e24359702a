// Out of what everybody waits for, whom it all hangs on.
#pragma once

#include <string>
#include <vector>

namespace troupe {

/// `lines` as actors report them: "WHO: WHAT <- WHOM", or "WHO: WHAT" when there is no one to name.
/// The result is the wait that explains the others, in words:
///   - two that wait for each other over the same thing: a message between them is lost;
///   - else a wait for somebody who waits for nobody;
///   - else the first line. Empty lines give "nobody says what for".
std::string RootOf(const std::vector<std::string>& lines);

}  // namespace troupe
