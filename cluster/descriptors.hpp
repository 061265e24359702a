// How many files and sockets this process may have open.
#pragma once

#include <cstddef>

namespace troupe {

/// The soft limit of open files.
std::size_t DescriptorLimit();
/// Raises the soft limit to the hard one. To be called before there are threads.
void RaiseDescriptorLimit();

}  // namespace troupe
