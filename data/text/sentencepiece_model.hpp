// Checks the file of a SentencePiece model before the library reads it. Version 0.1.97 trusts the
// tables in the file, and reads out of bounds if they are damaged.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace troupe {

/// Returns the problem of `model` as the end of "expected a sentencepiece model, ..."; "" if the
/// library can read it. Checks the protocol buffer around the tables, the normalization tables, and
/// the lengths of pieces, since the library recurses once for each byte of one.
/// Leaves errors that the library refuses to the library.
std::string ProblemOf(std::span<const std::byte> model);

/// Checks a normalization table (precompiled_charsmap), which maps text to its replacements:
///   uint32   size of the trie in bytes      little-endian, as are the units
///   units    the trie: uint32 each, in the layout of Darts-clone
///   strings  the replacements, each ended by a NUL; the trie's values are offsets into them
/// Returns the reason why a lookup in `charsmap` could read outside of it for some text; else "".
/// Also refuses more matches of one text than the library has room for, loops, and replacements so
/// long that a text grows out of proportion.
std::string CharsmapProblem(std::span<const std::byte> charsmap);

}  // namespace troupe
