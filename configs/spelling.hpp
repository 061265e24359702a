// The nearest known word to a misspelt one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
int EditDistance(std::string_view a, std::string_view b);

/// The word of `known` nearest to `word`, the first of equals; empty when all are too far to be
/// meant (more than two edits, or more than a third of the word).
std::string Nearest(std::string_view word, std::span<const std::string> known);

/// "a", "b" or "c".
std::string Alternatives(std::span<const std::string> words);

}  // namespace troupe
