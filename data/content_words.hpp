// Finds the bytes of an answer that belong to content words, so that accuracy on them can be
// reported separately from accuracy on "a", "and" and "the".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe {

/// One flag per byte of `text`. A word is a run of ASCII letters and digits and of the bytes of
/// other UTF-8 characters; it is a content word unless it is one of
/// a an and are at by for from in is it its of on or the there to with this that (in any case).
std::vector<std::uint8_t> ContentBytes(std::string_view text);

}  // namespace troupe
