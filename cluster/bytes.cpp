#include "cluster/bytes.hpp"

namespace troupe {

// Inlined into a writer that is known to be empty, GCC 12 sees an overflow that is not there.
void ByteWriter::Raw(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

}  // namespace troupe
