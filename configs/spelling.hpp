// Finds the known word nearest to a misspelt one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// Returns the number of insertions, deletions, replacements and swaps of neighbours that turn `a`
/// into `b`.
int EditDistance(std::string_view a, std::string_view b);

/// Returns the word of `known` nearest to `word`, the first if equal. Empty if all are too far
/// (more than two edits, or more than a third of the word).
std::string Nearest(std::string_view word, std::span<const std::string> known);

/// Returns "a", "b" or "c".
std::string Alternatives(std::span<const std::string> words);

}  // namespace troupe
