// Survives the truncation of mapped files by other programs. Access to a truncated page raises
// SIGBUS, which would end the process; a guarded page becomes ordinary memory instead.
#pragma once

#include <cstddef>

namespace troupe {

/// Guards at most 64 mappings at a time, and ignores more. All functions here are thread-safe.
void GuardPages(std::byte* begin, std::size_t size);
/// Call it before the pages are unmapped.
void UnguardPages(const std::byte* begin);
/// Whether any guarded pages of this process have become ordinary memory since it began.
bool AnyPagesLost();

}  // namespace troupe
