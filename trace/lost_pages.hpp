// Mapped files that another program cuts short: a touch of what is no longer there raises SIGBUS,
// which would end the process. Guarded pages become ordinary memory instead.
#pragma once

#include <cstddef>

namespace troupe {

/// Thread-safe, as are all here. Beyond 64 at a time, pages are not guarded.
void GuardPages(std::byte* begin, std::size_t size);
/// Before they are unmapped.
void UnguardPages(const std::byte* begin);
/// Whether any pages of this process have become ordinary memory since it began.
bool AnyPagesLost();

}  // namespace troupe
