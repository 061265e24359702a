// Checks the file of a SentencePiece model before the library reads it: 0.1.97 trusts the tables in
// it and reads outside of them when they are damaged.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace troupe {

/// What is wrong with `model`, as the end of "expected a sentencepiece model, ..."; empty when the
/// library can read it. Checked are the protocol buffer around the tables, the normalization tables
/// (charsmap.hpp), and the lengths of pieces: the library recurses once for each byte of one.
/// Mistakes that the library itself refuses are left to it.
std::string ProblemOf(std::span<const std::byte> model);

}  // namespace troupe
