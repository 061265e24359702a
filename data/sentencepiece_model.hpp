// Checks the file of a SentencePiece model before the library reads it. Version 0.1.97 trusts the
// tables in the file, and reads out of bounds if they are damaged.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace troupe {

/// Returns the problem of `model` as the end of "expected a sentencepiece model, ..."; "" if the
/// library can read it. Checks the protocol buffer around the tables, the normalization tables
/// (charsmap.hpp), and the lengths of pieces, since the library recurses once for each byte of one.
/// Leaves errors that the library refuses to the library.
std::string ProblemOf(std::span<const std::byte> model);

}  // namespace troupe
