// The normalization table of a SentencePiece model (precompiled_charsmap): maps text to its
// replacements.
//   uint32   size of the trie in bytes      little-endian, as are the units
//   units    the trie: uint32 each, in the layout of Darts-clone
//   strings  the replacements, each ended by a NUL; the trie's values are offsets into them
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace troupe {

/// Returns the reason why a lookup in `charsmap` could read outside of it for some text; else "".
/// Also refuses more matches of one text than the library has room for, loops, and replacements so
/// long that a text grows out of proportion.
std::string CharsmapProblem(std::span<const std::byte> charsmap);

}  // namespace troupe
