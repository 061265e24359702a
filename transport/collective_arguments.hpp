// What the collectives of every kind of group make of their arguments.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>

namespace troupe {

/// Zero bytes may come with null pointers, which memmove does not allow; an input may be its own
/// place in the output.
inline void Copy(void* to, const void* from, std::size_t num_bytes) {
  if (num_bytes > 0 && to != from) std::memmove(to, from, num_bytes);
}

/// Why an all-to-all cannot have `got` of `what`, empty if that is what is `expected`.
inline std::string SizeError(const char* what, std::size_t expected, std::size_t got) {
  if (expected == got) return {};
  return std::string("all-to-all: expected ") + std::to_string(expected) + " " + what + ", got " +
         std::to_string(got);
}

}  // namespace troupe
