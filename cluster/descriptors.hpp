// The limit of files and sockets this process may have open.
#pragma once

#include <cstddef>

namespace troupe {

/// The soft limit.
std::size_t DescriptorLimit();
/// Raises the soft limit to the hard one. Call it before threads exist.
void RaiseDescriptorLimit();

}  // namespace troupe
