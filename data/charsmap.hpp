// The normalization table of a SentencePiece model (precompiled_charsmap): which text becomes
// which.
//   uint32   size of the trie in bytes      little-endian, as are the units
//   units    the trie: uint32 each, in the layout of Darts-clone
//   strings  the replacements, each ended by a NUL; values of the trie are places in here
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace troupe {

/// What a lookup in `charsmap` could read outside of it; empty when that cannot happen for any
/// text. Also refused: more matches of one text than the library has places for, loops, and
/// replacements so long that a text grows out of proportion.
std::string CharsmapProblem(std::span<const std::byte> charsmap);

}  // namespace troupe
